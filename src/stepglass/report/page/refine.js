// Looking closer at a long run: of the part that is shown, the rows that were left out are fetched.

const REFINE_MS = 150; // after the last change of what is shown
const ENOUGH_ROWS = 6000; // several for each column of pixels: more would not be seen

class Refiner {
  // `address` gives rows of a segment between two lines; `onRows` is told when some have come.
  constructor(view, address, onRows) {
    this.view = view;
    this.address = address;
    this.onRows = onRows;
    this.timer = null;
    this.asked = new Set();
  }

  // The run was sent anew: so is what was fetched.
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

  // The lines to ask for: from the row before the part that is shown to the row after it.
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
      this.asked.delete(key); // the next look may do better
    }
  }
}

// Of a long run not every iteration is here: whoever zooms in must know.
function thinnedText() {
  const [drawn, total] = ["numRows", "numPrinted"].map((name) =>
    view.runs.reduce((sum, run) => sum + run[name], 0));
  if (drawn >= total) return "";
  const isLive = document.body.dataset.mode === "live";
  return say(isLive ? "page-thinned-live" : "page-thinned", { total: whole(total), drawn: whole(drawn) });
}
