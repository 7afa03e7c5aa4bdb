// Zooming into a long run: fetches the rows that are missing in the visible part.

const REFINE_MS = 150; // wait this long after the last zoom or move
const ENOUGH_ROWS = 6000; // several rows per column of pixels: more would not be visible

class Refiner {
  // `address` is the URL that returns rows between two lines. `onRows` is called when rows arrive.
  constructor(view, address, onRows) {
    this.view = view;
    this.address = address;
    this.onRows = onRows;
    this.timer = null;
    this.asked = new Set();
  }

  // The run is sent again, so the fetched rows must be fetched again too.
  forget() {
    this.asked.clear();
  }

  soon() {
    clearTimeout(this.timer);
    if (this.view.zoom) this.timer = setTimeout(() => this.look(), REFINE_MS);
  }

  async look() {
    const [run] = this.view.runs;
    for (const segment of run.segments) {
      const part = this.wanted(segment);
      if (part) await this.fetch(run, part);
    }
  }

  // The lines to request: from the row before the visible part to the row after it.
  wanted(segment) {
    const [numbers, lines] = [segment.column("num"), segment.column("line")];
    if (!numbers || !segment.count) return null;
    const [low, high] = this.view.range();
    const x = segment.x(this.view.axis);
    const first = Math.max(0, lowerBound(x, segment.count, low) - 1);
    const last = Math.min(segment.count - 1, lowerBound(x, segment.count, high) + 1);
    const isThin = numbers.subarray(first + 1, last + 1).some((number) => number > 1);
    if (last - first > ENOUGH_ROWS || !isThin) return null;
    const part = { segment: segment.number, after: lines[first], until: lines[last] };
    const key = new URLSearchParams(part).toString();
    if (this.asked.has(key)) return null;
    this.asked.add(key);
    return key;
  }

  async fetch(run, key) {
    try {
      const answer = await fetch(`${this.address}?${key}`);
      if (!answer.ok || run !== this.view.runs[0]) throw new Error(answer.statusText);
      await run.refine(await answer.json());
      this.onRows();
    } catch {
      this.asked.delete(key); // the next attempt may succeed
    }
  }
}
