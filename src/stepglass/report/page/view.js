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
    this.isComplete = false; // then charts that nobody has looked at yet are drawn as well
    this.isDrawing = false;
  }

  full() {
    let [low, high] = [Infinity, -Infinity];
    for (const segment of segmentsOf(this)) {
      const evals = this.axis === "time" ? [] : segment.shownEvals;
      if (evals.length) { // an evaluation may follow the last iteration
        low = Math.min(low, segment.xAt(evals[0][0], this.axis));
        high = Math.max(high, segment.xAt(evals.at(-1)[0], this.axis));
      }
      if (!segment.shown) continue;
      const x = segment.x(this.axis);
      low = Math.min(low, this.axis === "iter" ? x[0] : 0);
      high = Math.max(high, x[segment.shown - 1]);
    }
    if (!(low < high)) return Number.isFinite(low) ? [low - 0.5, low + 0.5] : [0, 1];
    return [low, this.isLive ? this.withRoom(low, high) : high];
  }

  // A running run gets free space on the right, so that new rows need no full redraw.
  withRoom(low, high) {
    const last = Math.max(...this.runs.map((run) => run.story?.state.max_iters ?? 0));
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
      const least = Math.min(high - low, AXES[this.axis].least);
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

  // Draws the charts that nobody has looked at, one at a time, whenever the browser has nothing else
  // to do: a picture of the whole page shows them.
  drawAhead() {
    if (!this.isComplete || this.isDrawing) return;
    const next = this.charts.find((chart) => chart.isDue && !chart.isSeen && !chart.element.hidden);
    if (!next) return;
    this.isDrawing = true;
    const later = globalThis.requestIdleCallback ?? ((act) => setTimeout(act, 50));
    later(() => {
      this.isDrawing = false;
      if (document.hidden) return;
      if (next.isDue) next.draw();
      this.drawAhead();
    });
  }

  // Tells the charts that there are new rows.
  grown() {
    for (const chart of this.charts) chart.grow();
    this.onChange?.();
  }
}
