// Time per iteration. A slow iteration has a dot in the colour of its cause.

const SLOW = 1.5; // times an ordinary iteration

const timeChart = {
  ...curve({
    id: "time", section: "iterations", values: "time_ms", color: "slate", format: duration,
    tick: durationTick, isTall: true, isLog: true, canBeLog: true,
  }),
  follows: (story) => story.parts.map((part) => part.stalls),
  legend: (view) => {
    const reasons = phasesOf(segmentsOf(view)).filter((name) => !MINOR_PHASES.has(name) && !STEP_PHASES.has(name));
    return [...new Set([...reasons, "stall"])].map((name) => legendEntry(phaseColor(name), phaseName(name)));
  },
  caption: (view) => {
    const normal = view.runs.length === 1 ? view.runs[0].segments.map(normalMs).filter(Boolean).at(-1) : null;
    return normal ? say("page-normal", { normal: duration(normal) }) : "";
  },
  marks: (view, chart, pen, done) => {
    for (const segment of segmentsOf(view)) {
      if (!done) boundaries(view, segment, chart, pen);
      spikes(view, segment, chart, pen, done?.get(segment) ?? 0);
    }
  },
  describe: (view, at, reach) => {
    const spike = spikeNear(view, at, reach);
    const found = spike ? [spike] : nearestRows(view, at, reach).filter(({ segment }) => segment.has("time_ms"));
    return described(view, found, timeLines);
  },
};

// The time of an ordinary iteration.
function normalMs(segment) {
  return segment.run.part(segment)?.normal_ms ?? null;
}

function stalls(segment) {
  return segment.derive("stalls", () => new Set(segment.run.part(segment)?.stalls ?? []));
}

// The time of each phase of a row: [phase, ms].
function phaseTimes(segment, row) {
  return segment.phases.map((column) => [column.slice(PHASE.length), segment.column(column)[row]]);
}

// The causes of a slow iteration: [phase, ms], the longest first. Empty for an ordinary iteration.
function causes(segment, row) {
  const normal = normalMs(segment);
  const time = segment.column("time_ms")?.[row];
  if (normal === null || !(time > SLOW * normal)) return [];
  const excess = time - normal;
  const found = [];
  let rest = excess;
  for (const [name, ms] of phaseTimes(segment, row)) {
    if (STEP_PHASES.has(name) || !(ms > 0.05 * excess)) continue;
    found.push([name, ms]);
    rest -= ms;
  }
  const isStall = stalls(segment).has(segment.column("iter")[row]);
  if (isStall && !segment.has("phase:stall") && rest > 0.05 * excess) found.push(["stall", rest]);
  return found.sort((a, b) => b[1] - a[1]);
}

// The slowest iteration near a position that has a known cause.
function spikeNear(view, at, reach) {
  let best = null;
  for (const segment of segmentsOf(view)) {
    const [x, times] = [segment.x(view.axis), segment.column("time_ms")];
    const limit = SLOW * (normalMs(segment) ?? Infinity);
    if (!times) continue;
    const count = segment.shown;
    for (let row = lowerBound(x, count, at - reach); row < count && x[row] <= at + reach; row += 1) {
      if (!(times[row] > limit) || times[row] <= (best?.time ?? 0)) continue;
      if (causes(segment, row).length) best = { segment, row, time: times[row] };
    }
  }
  return best;
}

function timeLines(segment, row) {
  const time = segment.column("time_ms")[row];
  const lines = [labelled(whereLine(segment, row), duration(time))];
  const found = causes(segment, row);
  if (found.length) {
    const names = found.map(([name]) => phaseName(name)).join(" + ");
    lines.push(say("page-slow-because", { cause: names, normal: duration(normalMs(segment)) }));
  }
  const phases = phaseTimes(segment, row)
    .filter(([, ms]) => ms > time / 1000)
    .sort((a, b) => b[1] - a[1]);
  if (phases.length > 1) {
    for (const [name, ms] of phases) lines.push([chip(phaseColor(name)), `${phaseName(name)} ${duration(ms)}`]);
  }
  return lines;
}

// Draws a small triangle for each evaluation and checkpoint, slow or not.
function boundaries(view, segment, chart, pen) {
  const [from, to] = chart.range;
  const bottom = MARGIN.top + chart.plotHeight;
  const triangle = (iter, color, size) => {
    const place = segment.xAt(iter, view.axis);
    if (place < from || place > to) return;
    pen.fillStyle = chart.color(color);
    const at = chart.pixel(place);
    pen.beginPath();
    pen.moveTo(at, bottom - size);
    pen.lineTo(at - 4, bottom);
    pen.lineTo(at + 4, bottom);
    pen.fill();
  };
  const few = (list) => (list.length < chart.plotWidth ? list : []);
  const saves = few(segment.saves).filter(([iter]) => iter !== null);
  for (const [iter] of saves) triangle(iter, phaseColor("checkpoint"), 12);
  for (const [iter] of few(segment.evals)) triangle(iter, phaseColor("eval"), 7);
}

// Draws a dot for the slowest of the slow iterations in each column of pixels, from row `first` on.
function spikes(view, segment, chart, pen, first) {
  const [x, times] = [segment.x(view.axis), segment.column("time_ms")];
  const [from, to] = chart.range;
  const limit = SLOW * (normalMs(segment) ?? Infinity);
  if (!times) return;
  const tops = new Map();
  const start = Math.max(first, lowerBound(x, segment.shown, from));
  for (let row = start; row < segment.shown && x[row] <= to; row += 1) {
    if (!(times[row] > limit)) continue;
    const column = Math.round(chart.pixel(x[row]));
    if (!(tops.get(column)?.time >= times[row])) tops.set(column, { row, time: times[row] });
  }
  for (const { row, time } of tops.values()) {
    const found = causes(segment, row);
    if (!found.length) continue;
    pen.fillStyle = chart.color(phaseColor(found[0][0]));
    chart.dot(pen, chart.pixel(x[row]), time, 3.5);
  }
}
