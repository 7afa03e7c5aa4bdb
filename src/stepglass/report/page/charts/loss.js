// Training and validation loss: the raw and smoothed curves, and evaluations with their errors.

const lossChart = {
  id: "loss",
  section: "loss",
  isTall: true,
  canBeLog: true,
  tick,
  follows: (story) => story.parts.map((part) => part.best),
  legend: (view) => (view.runs.length > 1
    ? [...runLegend(view), make("span", {}, say("page-dashed"))]
    : [legendEntry("blue", say("page-train")), legendEntry("orange", say("page-val"))]),
  lines: (view) => segmentsOf(view).flatMap((segment) => lossLines(view, segment)),
  marks: (view, chart, pen, done) => {
    if (done) return; // new rows do not change the marks
    for (const segment of segmentsOf(view)) lossBand(view, segment, chart, pen);
    for (const segment of segmentsOf(view)) bestMark(view, segment, chart, pen);
  },
  caption: (view) => (view.runs.some((run) => run.segments.some((s) => s.evals.some((e) => e[2])))
    ? say("page-band") : ""),
  describe: (view, at, reach) => described(view, nearestRows(view, at, reach), (segment, row) =>
    [whereLine(segment, row), ...trainText(view, segment, row), ...evalText(view, segment, at, reach)]),
};

function lossLines(view, segment) {
  const alpha = strength(segment);
  const lines = [];
  if (segment.has("loss")) {
    const isSmooth = view.smoothing > 0;
    const line = { x: segment.x(view.axis), count: segment.shown, color: runColor(view, segment.run, "blue") };
    lines.push({ ...line, y: segment.column("loss"), alpha: alpha * (isSmooth ? 0.3 : 1), width: 1, joins: true });
    if (isSmooth) lines.push({ ...line, y: segment.smoothed(view.smoothing), alpha, width: 2, joins: true });
  }
  const line = evalLine(view, segment);
  lines.push({ ...line, color: runColor(view, segment.run, "orange"), alpha, width: 2,
    dots: line.count < 200, dash: view.runs.length > 1 ? [5, 3] : [] });
  return lines;
}

function evalLine(view, segment) {
  const evals = segment.shownEvals.filter(([, val]) => val !== null);
  const x = Float64Array.from(evals, ([iter]) => segment.xAt(iter, view.axis));
  return { evals, x, y: Float64Array.from(evals, ([, val]) => val), count: evals.length };
}

function trainText(view, segment, row) {
  const value = segment.column("loss")?.[row];
  if (!Number.isFinite(value)) return [];
  const raw = say("page-train-loss", { loss: loss(value) });
  if (!view.smoothing) return [raw];
  return [`${raw} (${say("page-smoothed", { loss: loss(segment.smoothed(view.smoothing)[row]) })})`];
}

function evalText(view, segment, at, reach) {
  const closest = nearestEval(evalLine(view, segment), at, Math.max(reach, 0));
  if (!closest) return [];
  const [iter, val, se] = closest;
  const text = say("page-val-loss", { loss: loss(val), number: named(iter) });
  return [se ? `${text} ± ${loss(se)}` : text];
}

function nearestEval(line, at, reach) {
  let best = null;
  line.evals.forEach((evaluation, i) => {
    const distance = Math.abs(line.x[i] - at);
    if (distance <= reach && (!best || distance < best.distance)) best = { evaluation, distance };
  });
  return best?.evaluation ?? null;
}

// Draws the standard error of the validation loss.
function lossBand(view, segment, chart, pen) {
  const { evals, x, y } = evalLine(view, segment);
  const known = evals.map((_, i) => i).filter((i) => evals[i][2]);
  if (known.length < 2) return;
  pen.beginPath();
  for (const i of known) pen.lineTo(chart.pixel(x[i]), chart.y(y[i] + evals[i][2]));
  for (const i of known.reverse()) {
    pen.lineTo(chart.pixel(x[i]), chart.y(Math.max(y[i] - evals[i][2], 1e-9)));
  }
  pen.fillStyle = chart.color(runColor(view, segment.run, "orange"));
  pen.globalAlpha = 0.18;
  pen.fill();
  pen.globalAlpha = 1;
}

// Draws a ring around the best evaluation, with its numbers.
function bestMark(view, segment, chart, pen) {
  const best = segment.run.part(segment)?.best;
  if (!best || strength(segment) < 1 || !segment.shownEvals.some(([iter]) => iter === best.iter)) return;
  const x = chart.pixel(segment.xAt(best.iter, view.axis));
  const y = chart.y(best.val);
  pen.strokeStyle = pen.fillStyle = chart.color(runColor(view, segment.run, "orange"));
  pen.lineWidth = 2;
  pen.beginPath();
  pen.arc(x, y, 6, 0, 2 * Math.PI);
  pen.stroke();
  const text = say("page-best", { loss: loss(best.val), number: named(best.iter) });
  pen.font = "12px system-ui, sans-serif";
  const width = pen.measureText(text).width;
  const left = x > MARGIN.left + chart.plotWidth / 2 ? x - 9 - width : x + 9;
  pen.fillStyle = chart.color("card");
  pen.globalAlpha = 0.85;
  pen.fillRect(left - 3, y - 26, width + 6, 17);
  pen.globalAlpha = 1;
  pen.textAlign = "left";
  pen.textBaseline = "bottom";
  pen.fillStyle = chart.color("text");
  pen.fillText(text, left, y - 10);
}
