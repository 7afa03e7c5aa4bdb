// How the time was spent during the run: the share of each phase, in bins of the axis.

const SHARES_MS = 30_000; // between two redraws while new rows come
const MOST_BINS = 160;

class SharesChart extends Chart {
  // Every row changes all bins, so they are redrawn only from time to time.
  grow() {
    const isDue = performance.now() - (this.drawnAt ?? 0) > SHARES_MS;
    if (this.isDue || isDue || this.element.hidden) this.ask();
  }

  scaleY() {
    [this.low, this.high] = [0, 100];
  }

  drawLine() {} // not drawn: the lines only define where there are rows

  // Time by phase in each bin.
  count() {
    const [from, to] = this.range;
    const segments = segmentsOf(this.view).filter((segment) => segment.count && hasShares(segment));
    const rows = segments.map((segment) => {
      const x = segment.x(this.view.axis);
      return lowerBound(x, segment.shown, to) - lowerBound(x, segment.shown, from) + 1;
    });
    const bins = Math.max(1, Math.min(MOST_BINS, Math.floor(this.plotWidth / 5), Math.max(...rows)));
    const sums = new Map();
    const totals = new Float64Array(bins);
    for (const segment of segments) {
      const x = segment.x(this.view.axis);
      const edges = Array.from({ length: bins }, (_, bin) =>
        lowerBound(x, segment.shown, from + ((to - from) * bin) / bins));
      edges.push(lowerBound(x, segment.shown, to + 1e-9));
      for (const column of segment.phases) {
        const phase = column.slice(PHASE.length);
        const data = segment.column(`sum:${column}`) ?? segment.column(column);
        if (!sums.has(phase)) sums.set(phase, new Float64Array(bins));
        const times = phase === "step" ? stepsPerRow(segment) : () => 1;
        for (let bin = 0; bin < bins; bin += 1) {
          let sum = 0;
          for (let row = edges[bin]; row < edges[bin + 1]; row += 1) sum += data[row] * times(row);
          sums.get(phase)[bin] += sum;
          totals[bin] += sum;
        }
      }
    }
    return { bins, sums, totals, names: inStackOrder(sums.keys()) };
  }
}

// How many steps a row represents. If a log prints every tenth iteration, it is ten.
function stepsPerRow(segment) {
  const [iters, numbers] = [segment.column("iter"), segment.column("num")];
  return (row) => (row ? Math.max(1, (iters[row] - iters[row - 1]) / (numbers?.[row] ?? 1)) : 1);
}

// Steps alone are not the whole time, so no share of them is shown.
function hasShares(segment) {
  const part = segment.run.part(segment); // a live page may not have been told of it yet
  const isWhole = !part || (part.ledger !== null && part.ledger.covers !== "steps");
  return isWhole && segment.phases.length > 1;
}

const sharesChart = {
  id: "shares",
  section: "ledger",
  Type: SharesChart,
  tick: (value) => percent(value, 0),
  legend: () => [], // the table beside it is one
  follows: (story) => story.parts.map((part) => part.ledger?.covers),
  // The shares of several runs together would be those of none.
  lines: (view) => (view.runs.length > 1 ? [] : segmentsOf(view)).filter(hasShares)
    .map((segment) => ({ x: segment.x(view.axis), y: segment.x(view.axis), count: segment.shown })),
  marks: (view, chart, pen) => {
    const counted = chart.books = chart.count();
    chart.drawnAt = performance.now();
    const width = chart.plotWidth / counted.bins;
    for (let bin = 0; bin < counted.bins; bin += 1) {
      let done = 0;
      for (const name of counted.names) {
        const share = (100 * counted.sums.get(name)[bin]) / counted.totals[bin];
        if (!(share > 0)) continue;
        const [top, bottom] = [chart.y(done + share), chart.y(done)];
        pen.fillStyle = chart.color(phaseColor(name));
        pen.fillRect(MARGIN.left + bin * width, top, width + 0.5, bottom - top);
        done += share;
      }
    }
  },
  describe: (view, at, reach, chart) => {
    const counted = chart.books;
    const [from, to] = view.range();
    if (!counted) return null;
    const bin = Math.min(counted.bins - 1, Math.floor(((at - from) / (to - from)) * counted.bins));
    if (!counted.totals[bin]) return null;
    const place = view.axis === "iter" ? say("page-iteration", { number: named(at) }) : AXES[view.axis].show(at);
    const lines = [labelled(place, duration(counted.totals[bin]))];
    for (const name of counted.names) {
      const ms = counted.sums.get(name)[bin];
      if (ms > 0) {
        const share = percent((100 * ms) / counted.totals[bin]);
        lines.push([chip(phaseColor(name)), `${phaseName(name)} ${share}`]);
      }
    }
    return { x: at, lines };
  },
};
