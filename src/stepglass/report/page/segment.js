// The part of a run that one process wrote. A segment begins where a run is started or resumed.

class Segment {
  constructor(run, number) {
    this.run = run;
    this.number = number;
    this.columns = {};
    this.count = 0;
    this.evals = [];
    this.saves = [];
    this.samples = [];
    this.resumes = false;
    this.elapsed = new Column(Float64Array);
    this.made = {};
    this.average = null;
  }

  column(name) {
    return this.columns[name]?.data;
  }

  has(name) {
    return name in this.columns;
  }

  get phases() {
    return Object.keys(this.columns).filter((name) => name.startsWith(PHASE));
  }

  get firstIter() {
    return this.count ? this.columns.iter.data[0] : Infinity;
  }

  // The first iteration that a later process did again.
  get end() {
    let end = Infinity;
    for (let at = this.number + 1; at < this.run.segments.length && this.run.segments[at].resumes; at += 1) {
      end = Math.min(end, this.run.segments[at].firstIter);
    }
    return end;
  }

  // How many rows were not repeated by a later process.
  get shown() {
    const { end } = this;
    return end === Infinity ? this.count : lowerBound(this.columns.iter?.data, this.count, end);
  }

  get shownEvals() {
    const { end } = this;
    return end === Infinity ? this.evals : this.evals.filter(([iter]) => iter <= end);
  }

  // The segment that this one continues: the last one before it of which something is left.
  get before() {
    let at = this.number;
    while (at > 0 && this.run.segments[at].resumes) {
      at -= 1;
      if (this.run.segments[at].shown) return this.run.segments[at];
    }
    return null;
  }

  // -- the x axis ------------------------------------------------------------------------------------

  // What an iteration adds to an axis of tokens or FLOPs. NaN if the log does not say.
  perIter(axis) {
    const part = this.run.part(this);
    const tokens = part?.tokens_per_iter ?? NaN;
    return axis === "tokens" ? tokens : tokens * (part?.flops_per_token ?? NaN);
  }

  // Does the log say where its iterations are on this axis?
  isOn(axis) {
    if (axis === "iter") return true;
    return axis === "time" ? this.has("time_ms") : this.perIter(axis) > 0;
  }

  x(axis) {
    if (axis === "iter") return this.column("iter");
    if (axis === "time") return this.elapsed.data;
    return this.derive(`x ${axis}`, () => {
      const [iters, first, { per, start }] = [this.column("iter"), this.firstIter, this.scaleOf(axis)];
      const result = new Float64Array(this.count);
      for (let row = 0; row < this.count; row += 1) result[row] = start + (iters[row] - first) * per;
      return result;
    });
  }

  // The position of an iteration on the axis.
  xAt(iter, axis) {
    if (axis === "iter" || !this.count) return iter;
    if (axis === "time") {
      const row = lowerBound(this.column("iter"), this.count, iter);
      return this.elapsed.data[Math.min(row, this.count - 1)];
    }
    const { per, start } = this.scaleOf(axis);
    return start + (iter - this.firstIter) * per;
  }

  // Where the first iteration is on an axis of tokens or FLOPs, and what each adds.
  scaleOf(axis) {
    return this.derive(`scale ${axis}`, () => {
      const [per, { before, firstIter }] = [this.perIter(axis), this];
      return { per, start: before ? before.xAt(firstIter, axis) : firstIter * per };
    });
  }

  // The smoothed loss. For new rows it is continued, not computed again.
  smoothed(weight) {
    if (this.average?.weight !== weight) {
      const { before } = this;
      this.average = new Average(weight, before ? before.smoothed(weight)[before.shown - 1] : NaN);
    }
    this.average.readOn(this);
    return this.average.column.data;
  }

  // A column computed from others. It is cached until there are more rows.
  derive(name, make) {
    const known = this.made[name];
    if (known && known.count === this.count && known.told === this.run.told) return known.values;
    const values = make();
    this.made[name] = { count: this.count, told: this.run.told, values };
    return values;
  }

  // Adds a message, which replaces all rows after a line of the log.
  take(message, columns) {
    const { after, count } = message;
    const from = this.rowAfter(after);
    this.resumes = message.resumes;
    this.replace(from, this.count, count, columns);
    this.evals = this.evals.filter((done) => done[5] <= after).concat(message.evals);
    this.saves = this.saves.filter((done) => done[2] <= after).concat(message.saves);
    this.samples = this.samples.filter(([line]) => line <= after).concat(message.samples);
  }

  // Adds all rows between two lines of the log, where rows had been dropped before.
  refine(message, columns) {
    const [from, to] = [this.rowAfter(message.after), this.rowAfter(message.until)];
    if (to > from) this.replace(from, to, message.count, columns);
  }

  // The first row after a line of the log. A page in a file has no line numbers, because it gets
  // all rows at once.
  rowAfter(line) {
    return "line" in this.columns ? lowerBound(this.columns.line.data, this.count, line + 1) : 0;
  }

  replace(from, to, count, columns) {
    const sums = [...new Set([...Object.keys(this.columns), ...Object.keys(columns)].filter(isSum))];
    const before = Object.fromEntries(Object.entries(this.columns).map(([name, column]) =>
      [name, column.data.subarray(0, this.count)]));
    for (const name of sums) {
      if (!(name in this.columns)) {
        this.columns[name] = new Column(Float32Array);
        this.columns[name].put(0, sumOf(name, before, this.count), 0);
      }
    }
    for (const name of new Set([...Object.keys(this.columns), ...Object.keys(columns)])) {
      const values = columns[name] ?? (isSum(name) ? sumOf(name, columns, count) : null);
      if (!(name in this.columns)) {
        this.columns[name] = new Column(values.constructor);
        this.columns[name].put(this.count, new values.constructor(0), emptyOf(name));
      }
      const column = this.columns[name];
      column.splice(from, to, values ?? new column.data.constructor(count).fill(emptyOf(name)));
    }
    this.count += count - (to - from);
    this.made = {};
    if (this.average && this.average.column.length > from) this.average = null;
    this.addUp(from);
  }

  // Computes the time since the start of the run. An iteration that was not printed is assumed to
  // take as long as the next printed one.
  addUp(from) {
    const [iters, times] = [this.column("iter"), this.column("time_ms")];
    const [sums, numbers] = [this.column("sum:time_ms") ?? times, this.column("num")];
    this.elapsed.cut(from);
    const result = new Float64Array(this.count - from);
    const before = this.resumes ? this.run.segments[this.number - 1] : undefined;
    let now = from ? this.elapsed.data[from - 1] : (before?.total ?? 0);
    for (let row = from; times && row < this.count; row += 1) {
      const printed = numbers?.[row] ?? 1;
      const gap = row ? iters[row] - iters[row - 1] : printed;
      const time = sums[row] === sums[row] ? sums[row] : 0;
      now += time / 1000;
      if (gap > printed) now += ((gap - printed) * (this.step(row) || time / printed)) / 1000;
      result[row - from] = now;
    }
    this.elapsed.put(from, result, 0);
  }

  // The number of iterations in the log, drawn or not.
  get printed() {
    const numbers = this.column("num");
    if (!numbers) return this.count;
    return this.derive("printed", () => numbers.subarray(0, this.count).reduce((a, b) => a + b, 0));
  }

  get total() {
    return this.count ? this.elapsed.data[this.count - 1] : 0;
  }

  // The time of the training step alone.
  step(row) {
    const alone = this.column("step_ms") ?? this.column("phase:step");
    return alone ? alone[row] : this.column("time_ms")?.[row];
  }
}

// An exponential moving average, corrected for its bias at the start.
class Average {
  // `start` is the average before the first row, if a segment continues another.
  constructor(weight, start) {
    this.weight = weight;
    this.column = new Column(Float32Array);
    this.mean = start === start ? start : 0;
    this.known = start === start ? 1 : 0;
  }

  readOn(segment) {
    const [start, { count }] = [this.column.length, segment];
    const [values, sums, numbers] = ["loss", "sum:loss", "num:loss"].map((name) => segment.column(name));
    const result = new Float32Array(count - start);
    for (let row = start; row < count; row += 1) {
      // A row that represents many iterations has the weight of all of them.
      const number = numbers?.[row] ?? 1;
      const value = numbers ? sums[row] / number : values[row];
      if (number && Number.isFinite(value)) {
        const kept = number === 1 ? this.weight : this.weight ** number;
        this.mean = kept * this.mean + (1 - kept) * value;
        this.known = kept * this.known + (1 - kept);
      }
      // A row without a loss has no average either: a loss that is NaN to the end is not drawn on.
      result[row - start] = number && Number.isFinite(value) ? this.mean / this.known : NaN;
    }
    this.column.put(start, result, NaN);
  }
}
