// A run: its segments and its story (everything except the curves). Messages from a file and from a
// server have the same form.

class Run {
  constructor(number) {
    this.number = number;
    this.segments = [];
    this.story = null;
    this.told = 0;
    this.listedAs = null; // its name in a list of runs, which may be longer than its own
  }

  async rows(message) {
    this.take(message, await columnsOf(message));
  }

  async refine(message) {
    this.segments[message.segment]?.refine(message, await columnsOf(message));
  }

  take(message, columns) {
    this.segments.length = Math.min(this.segments.length, message.segment + 1);
    while (this.segments.length <= message.segment) {
      this.segments.push(new Segment(this, this.segments.length));
    }
    this.segments[message.segment].take(message, columns);
  }

  tell(story) {
    this.story = story;
    this.told += 1;
  }

  get numRows() {
    return this.segments.reduce((sum, segment) => sum + segment.count, 0);
  }

  get numPrinted() {
    return this.segments.reduce((sum, segment) => sum + segment.printed, 0);
  }

  get name() {
    return this.listedAs ?? this.story?.name ?? "";
  }

  // The best evaluation of the run, undone and earlier attempts left out.
  get best() {
    let best = null;
    for (const segment of this.segments) {
      if (strength(segment) < 1) continue;
      for (const [iter, val] of segment.shownEvals) {
        if (Number.isFinite(val) && !(val >= best?.val)) best = { iter, val, segment };
      }
    }
    return best;
  }

  has(name) {
    return this.segments.some((segment) => segment.has(name));
  }

  part(segment) {
    return this.story?.parts[segment.number];
  }
}
