// The state that all charts share: the runs, the x axis and its visible part.

class View {
  constructor() {
    this.axis = "iter";
    this.zoom = null;
    this.smoothing = 0.6;
    this.charts = [];
    this.runs = [];
    this.isLive = false;
    this.numShown = 0; // rows that the charts have, drawn or not
  }

  full() {
    let [low, high] = [Infinity, -Infinity];
    for (const run of this.runs) {
      for (const segment of run.segments) {
        const evals = this.axis === "iter" ? segment.shownEvals : [];
        if (evals.length) { // an evaluation may follow the last iteration
          low = Math.min(low, evals[0][0]);
          high = Math.max(high, evals.at(-1)[0]);
        }
        if (!segment.count) continue;
        const x = segment.x(this.axis);
        low = Math.min(low, this.axis === "time" ? 0 : x[0]);
        high = Math.max(high, x[segment.count - 1]);
      }
    }
    if (!(low < high)) return Number.isFinite(low) ? [low - 0.5, low + 0.5] : [0, 1];
    return [low, this.isLive ? this.withRoom(low, high) : high];
  }

  // A running run gets free space on the right, so that new rows need no full redraw.
  withRoom(low, high) {
    const last = this.runs[0].story?.state.max_iters;
    if (this.axis === "iter" && last && high > 0.7 * last && high < last) return last;
    const step = niceStep(high - low, 8);
    return low + Math.ceil((1.02 * (high - low)) / step) * step;
  }

  range() {
    return this.zoom ?? this.full();
  }

  // Shows a part of the axis. Shows all of it for null or a larger range.
  show(range) {
    const [low, high] = this.full();
    if (range === null) {
      this.zoom = null;
    } else {
      const least = Math.min(high - low, this.axis === "time" ? 1e-3 : 2);
      const width = Math.max(range[1] - range[0], least);
      const from = Math.max(low, Math.min(range[0], high - width));
      const to = Math.min(high, from + width);
      this.zoom = from <= low && to >= high ? null : [from, to];
    }
    this.changed();
  }

  // Zooms by a factor around a position.
  scale(factor, around) {
    const [from, to] = this.range();
    const middle = around ?? (from + to) / 2;
    this.show([middle - (middle - from) * factor, middle + (to - middle) * factor]);
  }

  // Moves by a share of the visible range.
  move(share) {
    const [from, to] = this.range();
    const by = (to - from) * share;
    this.show([from + by, to + by]);
  }

  changed() {
    for (const chart of this.charts) chart.ask();
    this.onChange?.();
  }

  // Tells the charts that there are new rows.
  grown() {
    for (const chart of this.charts) chart.grow();
    this.onChange?.();
  }
}
