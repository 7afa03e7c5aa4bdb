// Functions that charts share: the segments to draw, the row at the pointer, and a simple chart of
// one column.

const NUM_RUN_COLORS = 8; // in page.css

const ownColor = (run) => `run-${run.number % NUM_RUN_COLORS}`;

// The colour of a run if there are several. For a single run, the colour of the chart.
function runColor(view, run, alone) {
  return view.runs.length > 1 ? ownColor(run) : alone;
}

function legendEntry(color, text) {
  return make("span", {}, chip(color), text);
}

// The names of the runs if there are several, for all charts together.
function runLegend(view) {
  return view.runs.length > 1 ? view.runs.map((run) => legendEntry(ownColor(run), run.name)) : [];
}

// The last point of the segment that a resumed one continues, so that a run is one curve.
function pointBefore(view, segment, valuesOf) {
  const { before } = segment;
  const values = before?.isOn(view.axis) ? valuesOf(before) : null;
  let row = (before?.shown ?? 0) - 1;
  while (values && row > 0 && !Number.isFinite(values[row])) row -= 1; // some columns have gaps
  return values && row >= 0 ? { x: before.x(view.axis)[row], y: values[row] } : null;
}

function segmentsOf(view) {
  return view.runs.flatMap((run) =>
    run.segments.filter((segment) => (segment.count || segment.evals.length) && segment.isOn(view.axis)));
}

// If a run was started again in the same log, the earlier attempts are drawn fainter.
function strength(segment) {
  const after = segment.run.segments.slice(segment.number + 1);
  return after.some((next) => next.count && !next.resumes) ? 0.35 : 1;
}

function nearestRow(segment, axis, at) {
  const x = segment.x(axis);
  const row = lowerBound(x, segment.shown, at);
  if (row === 0) return 0;
  if (row >= segment.shown) return segment.shown - 1;
  return at - x[row - 1] < x[row] - at ? row - 1 : row;
}

// The row of each run that is nearest to a position, if it is within reach.
function nearestRows(view, at, reach) {
  const [from, to] = view.range();
  const enough = Math.max(reach, (to - from) / 20);
  const found = [];
  for (const run of view.runs) {
    let best = null;
    for (const segment of run.segments) {
      if (!segment.shown || !segment.isOn(view.axis)) continue;
      const row = nearestRow(segment, view.axis, at);
      const distance = Math.abs(segment.x(view.axis)[row] - at);
      if (!best || distance <= best.distance) best = { segment, row, distance };
    }
    if (best && best.distance <= enough) found.push(best);
  }
  return found;
}

// The description of rows, shown at the position of the first row.
function described(view, found, linesOf) {
  if (!found.length) return null;
  const [{ segment, row }] = found;
  return { x: segment.x(view.axis)[row], lines: found.flatMap((one) => linesOf(one.segment, one.row)) };
}

// The iteration of a row and its time since the start.
function whereLine(segment, row) {
  const where = say("page-iteration", { number: named(segment.column("iter")[row]) });
  const prefix = segment.run.isCompared ? `${segment.run.name} · ` : "";
  return `${prefix}${where}${segment.has("time_ms") ? ` · ${elapsed(segment.elapsed.data[row])}` : ""}`;
}

// A chart of one column. `values` is its name, or a function that computes it from a segment.
// `format` turns a number into text. `color` is the colour of the curve if there is one run.
function curve({ values, format, color, ...spec }) {
  const valuesOf = typeof values === "string" ? (segment) => segment.column(values) : values;
  return {
    lines: (view) => segmentsOf(view).flatMap((segment) => {
      const y = valuesOf(segment);
      return y ? [{
        x: segment.x(view.axis), y, count: segment.shown, color: runColor(view, segment.run, color),
        before: pointBefore(view, segment, valuesOf), alpha: strength(segment), width: 1.25, joins: true,
      }] : [];
    }),
    describe: (view, at, reach) => described(view,
      nearestRows(view, at, reach).filter(({ segment }) => valuesOf(segment)),
      (segment, row) => [whereLine(segment, row), format(valuesOf(segment)[row])]),
    ...spec,
  };
}
