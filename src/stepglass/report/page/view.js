// What all charts look at together: the runs, the x axis and the part of it that is shown.

class View {
  constructor() {
    this.axis = "iter";
    this.zoom = null;
    this.smoothing = 0.6;
    this.charts = [];
    this.runs = [];
    this.isLive = false;
    this.numShown = 0; // rows that the charts have, drawn or not yet
  }

  full() {
    let [low, high] = [Infinity, -Infinity];
    for (const run of this.runs) {
      for (const segment of run.segments) {
        const evals = this.axis === "iter" ? segment.shownEvals : [];
        if (evals.length) { // an evaluation may come after the last update
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

  // A run that goes on gets room on the right: new rows are added there without a new drawing.
  withRoom(low, high) {
    const last = this.runs[0].story?.state.max_iters;
    if (this.axis === "iter" && last && high > 0.7 * last && high < last) return last;
    const step = niceStep(high - low, 8);
    return low + Math.ceil((1.02 * (high - low)) / step) * step;
  }

  range() {
    return this.zoom ?? this.full();
  }

  // Shows a part of the axis; all of it for null, or for a part that is larger.
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

  // Zooms by a factor around a place.
  scale(factor, around) {
    const [from, to] = this.range();
    const middle = around ?? (from + to) / 2;
    this.show([middle - (middle - from) * factor, middle + (to - middle) * factor]);
  }

  // Moves by a share of what is shown.
  move(share) {
    const [from, to] = this.range();
    const by = (to - from) * share;
    this.show([from + by, to + by]);
  }

  changed() {
    for (const chart of this.charts) chart.ask();
    this.onChange?.();
  }

  // Tells the charts that rows have come.
  grown() {
    for (const chart of this.charts) chart.grow();
    this.onChange?.();
  }
}
