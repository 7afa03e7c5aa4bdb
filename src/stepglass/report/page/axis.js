// The x axes that curves can be aligned by. Each says how its values are written, how far apart its
// ticks are, and how small the visible part can be.

const AXES = {
  iter: { show: named, tick: named, step: (span, parts) => Math.max(1, niceStep(span, parts)), least: 2 },
  tokens: { show: large, tick: largeTick, step: niceStep, least: 1 },
  time: { show: elapsed, tick: elapsedTick, step: niceSeconds, least: 1e-3 },
  flops: { show: flops, tick: (value) => flops(value), step: niceStep, least: 1 },
};

// Can all runs be drawn over this axis? Before there are rows, nothing is known.
function canAlign(view, axis) {
  const known = view.runs.filter((run) => run.numRows);
  return axis === "iter" || (known.length > 0 && known.every((run) =>
    run.segments.every((segment) => !segment.count || segment.isOn(axis))));
}
