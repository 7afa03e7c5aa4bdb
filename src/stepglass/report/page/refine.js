// Zooming into a long run: fetches the rows that are missing in the visible part.

const REFINE_MS = 150; // wait this long after the last zoom or move
const ENOUGH_ROWS = 6000; // several rows per column of pixels: more would not be visible

class Refiner {
  // `addresses` are the URLs that return rows between two lines, one for each run. `onRows` is
  // called when rows arrive.
  constructor(view, addresses, onRows) {
    this.view = view;
    this.addresses = addresses;
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
    for (const run of this.view.runs) {
      for (const segment of run.segments) {
        const address = segment.isOn(this.view.axis) && this.wanted(segment);
        if (address) await this.fetch(run, address);
      }
    }
  }

  // The address of the rows to request: from the row before the visible part to the row after it.
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
    const address = `${this.addresses[segment.run.number]}?${new URLSearchParams(part)}`;
    if (this.asked.has(address)) return null;
    this.asked.add(address);
    return address;
  }

  async fetch(run, address) {
    try {
      const answer = await fetch(address);
      if (!answer.ok || run !== this.view.runs[run.number]) throw new Error(answer.statusText);
      await run.refine(await answer.json());
      this.onRows();
    } catch {
      this.asked.delete(address); // the next attempt may succeed
    }
  }
}
