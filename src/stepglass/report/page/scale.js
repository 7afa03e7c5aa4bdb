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

const START_SHARE = 0.05; // of the visible part: where a loss is still that of a new model
const USUAL_SHARE = 0.98; // of the columns of pixels: the others are spikes
const FEW_COLUMNS = 100; // whoever zooms in this far wants to see a spike
const WORTH_IT = 1.3; // times as much height for the curve, or the axis is not cut

// A high end of the axis that leaves out the first loss and spikes, if they would squeeze the rest.
function usualHigh(lines, view, low, high) {
  const [from, to] = view.range();
  const after = view.zoom ? from : from + START_SHARE * (to - from);
  const tops = [];
  let usual = -Infinity;
  for (const { x, y, count, isSparse, found } of lines) {
    for (let row = 0; isSparse && row < count; row += 1) {
      if (x[row] >= after && x[row] <= to && Number.isFinite(y[row])) usual = Math.max(usual, y[row]);
    }
    const first = Math.ceil(((after - from) / (to - from || 1)) * (found.length / 4));
    for (let at = 4 * first; !isSparse && at < found.length; at += 4) {
      if (found[at] === found[at]) tops.push(found[at + 2]);
    }
  }
  if (tops.length < (view.zoom ? FEW_COLUMNS : 2)) return high;
  tops.sort((a, b) => a - b);
  usual = Math.max(usual, tops[Math.floor(USUAL_SHARE * (tops.length - 1))]);
  return high - low > WORTH_IT * (usual - low) ? usual : high;
}
