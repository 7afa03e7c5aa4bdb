// A run as columns of numbers. Messages come from a file or from a server; they are the same.
// Of a long run not every iteration is there: a row then stands for those dropped before it as well.
// `num` says how many it stands for, and columns `sum:...` add up what they had.

class Column {
  constructor(Type) {
    this.data = new Type(1024);
    this.length = 0;
  }

  cut(length) {
    this.length = Math.min(this.length, length);
  }

  // Numbers from `start` on; what was not said before that is NaN, of a phase 0.
  put(start, values, empty) {
    const end = start + values.length;
    if (end > this.data.length) {
      const grown = new this.data.constructor(Math.max(end, 2 * this.data.length));
      grown.set(this.data.subarray(0, this.length));
      this.data = grown;
    }
    if (start > this.length) this.data.fill(empty, this.length, start);
    this.data.set(values, start);
    this.length = end;
  }

  // Other numbers in the place of some.
  splice(start, end, values) {
    const rest = this.data.slice(end, this.length);
    this.cut(start);
    this.put(start, values, NaN);
    this.put(this.length, rest, NaN);
  }
}

const isSum = (name) => name.startsWith("sum:") || name.startsWith("num");
const emptyOf = (name) => (name.startsWith("phase:") || isSum(name) ? 0 : NaN);

// What a row has that stands for itself alone.
function sumOf(name, columns, count) {
  if (name === "num") return new Float32Array(count).fill(1);
  const own = columns[name.slice(4)] ?? new Float32Array(count); // behind "sum:" and "num:"
  const isKnown = name.startsWith("num:") ? () => 1 : (value) => value;
  return Float32Array.from(own, (value) => (Number.isFinite(value) ? isKnown(value) : 0));
}

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64);
  const text = atob(base64);
  const result = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) result[i] = text.charCodeAt(i);
  return result;
}

async function inflate(data) {
  const stream = new Blob([data]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Bytes of equal weight stand together in a file: that makes them small.
function apart(data, size) {
  const count = data.length / size;
  const result = new Uint8Array(data.length);
  for (let place = 0; place < size; place += 1) {
    const from = place * count;
    for (let i = 0, to = place; i < count; i += 1, to += size) result[to] = data[from + i];
  }
  return result.buffer;
}

async function numbersOf(packed, count) {
  if ("from" in packed) {
    const [first, step] = [Number(packed.from), Number(packed.step)];
    const result = new Float64Array(count);
    for (let i = 0; i < count; i += 1) result[i] = first + i * step;
    return result;
  }
  if ("f32" in packed) return new Float32Array(bytesOf(packed.f32).buffer);
  if ("f64" in packed) return new Float64Array(bytesOf(packed.f64).buffer);
  const size = "z64" in packed ? 8 : 4;
  const data = apart(await inflate(bytesOf(packed.z64 ?? packed.z32)), size);
  return size === 8 ? new Float64Array(data) : new Float32Array(data);
}

async function columnsOf(message) {
  const columns = {};
  for (const [name, packed] of Object.entries(message.columns)) {
    columns[name] = await numbersOf(packed, message.count);
  }
  return columns;
}

// One process's life: it begins where a run is started or goes on.
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
    return Object.keys(this.columns).filter((name) => name.startsWith("phase:"));
  }

  get firstIter() {
    return this.count ? this.columns.iter.data[0] : Infinity;
  }

  // Rows that were not done again by a later process.
  get shown() {
    const next = this.run.segments[this.number + 1];
    if (!next || !next.resumes || !next.count) return this.count;
    return lowerBound(this.columns.iter.data, this.count, next.firstIter);
  }

  get shownEvals() {
    const next = this.run.segments[this.number + 1];
    if (!next || !next.resumes || !next.count) return this.evals;
    return this.evals.filter(([iter]) => iter <= next.firstIter);
  }

  x(axis) {
    return axis === "time" ? this.elapsed.data : this.column("iter");
  }

  // Where an iteration is on the axis.
  xAt(iter, axis) {
    if (axis !== "time" || !this.count) return iter;
    const row = lowerBound(this.column("iter"), this.count, iter);
    return this.elapsed.data[Math.min(row, this.count - 1)];
  }

  // The loss, smoothed; as rows come, it goes on from where it was.
  smoothed(weight) {
    if (this.average?.weight !== weight) this.average = new Average(weight);
    this.average.readOn(this);
    return this.average.column.data;
  }

  // A column that is computed from others, kept until there are more rows.
  derive(name, make) {
    const known = this.made[name];
    if (known && known.count === this.count && known.told === this.run.told) return known.values;
    const values = make();
    this.made[name] = { count: this.count, told: this.run.told, values };
    return values;
  }

  // Rows after a line of the log, in the place of those that were there.
  take(message, columns) {
    const { after, count } = message;
    const from = this.rowAfter(after);
    this.resumes = message.resumes;
    this.replace(from, this.count, count, columns);
    this.evals = this.evals.filter((done) => done[5] <= after).concat(message.evals);
    this.saves = this.saves.filter((done) => done[2] <= after).concat(message.saves);
    this.samples = this.samples.filter(([line]) => line <= after).concat(message.samples);
  }

  // All rows of some lines, in the place of those of them that were there.
  refine(message, columns) {
    const [from, to] = [this.rowAfter(message.after), this.rowAfter(message.until)];
    if (to > from) this.replace(from, to, message.count, columns);
  }

  // The first row after a line. A file sends everything at once, and no lines.
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

  // Time since the run began. Iterations that were not printed took what their neighbour took.
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

  // Iterations that were printed, drawn or not.
  get printed() {
    const numbers = this.column("num");
    if (!numbers) return this.count;
    return this.derive("printed", () => numbers.subarray(0, this.count).reduce((a, b) => a + b, 0));
  }

  get total() {
    return this.count ? this.elapsed.data[this.count - 1] : 0;
  }

  // What the training step alone took.
  step(row) {
    const alone = this.column("step_ms") ?? this.column("phase:step");
    return alone ? alone[row] : this.column("time_ms")?.[row];
  }
}

// A moving average that forgets, without its bias at the start.
class Average {
  constructor(weight) {
    this.weight = weight;
    this.column = new Column(Float32Array);
    this.mean = 0;
    this.known = 0;
  }

  readOn(segment) {
    const [start, { count }] = [this.column.length, segment];
    const [values, sums, numbers] = ["loss", "sum:loss", "num:loss"].map((name) => segment.column(name));
    const result = new Float32Array(count - start);
    for (let row = start; row < count; row += 1) {
      // A row that stands for many counts for as much as they would have.
      const number = numbers?.[row] ?? 1;
      const value = numbers ? sums[row] / number : values[row];
      if (number && Number.isFinite(value)) {
        const kept = number === 1 ? this.weight : this.weight ** number;
        this.mean = kept * this.mean + (1 - kept) * value;
        this.known = kept * this.known + (1 - kept);
      }
      result[row - start] = this.known ? this.mean / this.known : NaN;
    }
    this.column.put(start, result, NaN);
  }
}

class Run {
  constructor(number) {
    this.number = number;
    this.segments = [];
    this.story = null;
    this.told = 0;
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
    return this.story?.name ?? "";
  }

  has(name) {
    return this.segments.some((segment) => segment.has(name));
  }

  part(segment) {
    return this.story?.parts[segment.number];
  }
}

function lowerBound(values, count, wanted) {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
