// Calculations for a chart: which rows to draw, and where the ticks of an axis are.

// The first, lowest, highest and last value in each column of pixels, or NaN if there is none.
function extremes(x, y, count, from, to, width, isLog) {
  const found = new Float64Array(4 * width).fill(NaN);
  const scale = width / (to - from || 1);
  for (let row = lowerBound(x, count, from); row < count && x[row] <= to; row += 1) {
    const value = y[row];
    if (!(value > -Infinity && value < Infinity) || (isLog && value <= 0)) continue;
    const at = 4 * Math.min(width - 1, Math.floor((x[row] - from) * scale));
    if (found[at] !== found[at]) {
      found[at] = found[at + 1] = found[at + 2] = value;
    } else if (value < found[at + 1]) found[at + 1] = value;
    else if (value > found[at + 2]) found[at + 2] = value;
    found[at + 3] = value;
  }
  return found;
}

// A round distance between ticks: 1, 2 or 5 times a power of ten.
function niceStep(span, parts) {
  const rough = span / Math.max(parts, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const lead = rough / power;
  return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

// The same for a time axis, which also has whole minutes and hours.
function niceSeconds(span, parts) {
  const rough = span / Math.max(parts, 1);
  if (rough < 30) return niceStep(span, parts);
  const steps = [60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
  return steps.find((step) => step >= rough) ?? 86400 * Math.ceil(rough / 86400);
}

function linearTicks(low, high, parts) {
  const step = niceStep(high - low, parts);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9; tick += step) {
    ticks.push(Math.abs(tick) < step * 1e-9 ? 0 : tick);
  }
  return ticks;
}

function logTicks(low, high, parts) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    for (const lead of [1, 2, 5]) {
      const tick = lead * 10 ** power;
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  if (ticks.length < 2) return linearTicks(low, high, parts);
  const skip = Math.ceil(ticks.length / (2 * parts));
  return ticks.filter((_, i) => i % skip === 0);
}
