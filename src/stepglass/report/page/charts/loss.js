// Training and validation loss: the raw and smoothed curves, and evaluations with their errors.

const lossChart = {
  id: "loss",
  section: "loss",
  isTall: true,
  canBeLog: true,
  isRobust: true,
  tick,
  legend: (view) => (view.runs.length > 1
    ? [make("span", {}, say("page-dashed"))]
    : [legendEntry("blue", say("page-train")), legendEntry("orange", say("page-val"))]),
  lines: (view) => segmentsOf(view).flatMap((segment) => lossLines(view, segment)),
  marks: (view, chart, pen, done) => {
    if (done) return; // new rows do not change the marks
    for (const segment of segmentsOf(view)) lossBand(view, segment, chart, pen);
    const bests = view.runs.filter((run) => run.best?.segment.isOn(view.axis)).map((run) => ({ run, ...run.best }));
    const winner = Math.min(...bests.map(({ val }) => val));
    for (const best of bests) bestMark(view, best, chart, pen, best.val === winner);
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
    const line = { x: segment.x(view.axis), count: segment.shown, color: runColor(view, segment.run, "blue"), joins: true };
    const add = (valuesOf, looks) => lines.push({
      ...line, y: valuesOf(segment), before: pointBefore(view, segment, valuesOf), ...looks,
    });
    add((one) => one.column("loss"), { alpha: alpha * (isSmooth ? 0.3 : 1), width: 1 });
    if (isSmooth) add((one) => one.smoothed(view.smoothing), { alpha, width: 2 });
  }
  const line = evalLine(view, segment);
  lines.push({ ...line, color: runColor(view, segment.run, "orange"), alpha, width: 2,
    isSparse: true, before: evalBefore(view, segment), dots: line.count < 200, dash: view.runs.length > 1 ? [5, 3] : [] });
  return lines;
}

function evalLine(view, segment) {
  const evals = segment.shownEvals.filter(([, val]) => val !== null);
  const x = Float64Array.from(evals, ([iter]) => segment.xAt(iter, view.axis));
  return { evals, x, y: Float64Array.from(evals, ([, val]) => val), count: evals.length };
}

// The last evaluation of the segment that a resumed one continues.
function evalBefore(view, segment) {
  const { before } = segment;
  if (!before?.isOn(view.axis)) return null;
  const { x, y, count } = evalLine(view, before);
  return count ? { x: x[count - 1], y: y[count - 1] } : null;
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

// Draws a ring around the best evaluation of a run, with its numbers if it is the best of all.
function bestMark(view, { run, segment, iter, val }, chart, pen, isLabelled) {
  const x = chart.pixel(segment.xAt(iter, view.axis));
  const y = chart.y(val);
  pen.strokeStyle = pen.fillStyle = chart.color(runColor(view, run, "orange"));
  pen.lineWidth = 2;
  pen.beginPath();
  pen.arc(x, y, 6, 0, 2 * Math.PI);
  pen.stroke();
  if (!isLabelled) return;
  const text = say("page-best", { loss: loss(val), number: named(iter) });
  pen.font = "12px system-ui, sans-serif";
  const width = pen.measureText(text).width;
  const left = x > MARGIN.left + chart.plotWidth / 2 ? x - 9 - width : x + 9;
  const bottom = y - 10 < 18 ? y + 26 : y - 10;
  pen.fillStyle = chart.color("card");
  pen.globalAlpha = 0.85;
  pen.fillRect(left - 3, bottom - 16, width + 6, 17);
  pen.globalAlpha = 1;
  pen.textAlign = "left";
  pen.textBaseline = "bottom";
  pen.fillStyle = chart.color("text");
  pen.fillText(text, left, bottom);
}
