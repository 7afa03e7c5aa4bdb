// A run as columns of numbers. Messages come from a file or from a server; they are the same.

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
    this.average.readOn(this.column("loss"), this.count);
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

  take(message, columns) {
    const [rows, evals, saves, events] = message.after;
    this.resumes = message.resumes;
    for (const [name, values] of Object.entries(columns)) {
      if (!(name in this.columns)) {
        this.columns[name] = new Column(values.constructor);
      }
      this.columns[name].cut(rows);
      this.columns[name].put(rows, values, name.startsWith("phase:") ? 0 : NaN);
    }
    this.count = rows + message.count;
    for (const [name, column] of Object.entries(this.columns)) {
      if (column.length < this.count || !(name in columns)) {
        column.cut(rows);
        const empty = name.startsWith("phase:") ? 0 : NaN;
        column.put(this.count, new column.data.constructor(0), empty);
      }
    }
    this.evals.length = Math.min(this.evals.length, evals);
    this.evals.push(...message.evals);
    this.saves.length = Math.min(this.saves.length, saves);
    this.saves.push(...message.saves);
    this.samples = this.samples.filter(([number]) => number < events);
    this.samples.push(...message.samples);
    this.made = {};
    if (this.average && this.average.column.length > rows) this.average = null;
    this.addUp(rows);
  }

  // Time since the run began. Iterations that were not printed took what their neighbour took.
  addUp(from) {
    const [iters, times] = [this.column("iter"), this.column("time_ms")];
    this.elapsed.cut(from);
    const result = new Float64Array(this.count - from);
    const before = this.resumes ? this.run.segments[this.number - 1] : undefined;
    let now = from ? this.elapsed.data[from - 1] : (before?.total ?? 0);
    for (let row = from; times && row < this.count; row += 1) {
      const gap = row ? iters[row] - iters[row - 1] : 1;
      const time = times[row] === times[row] ? times[row] : 0;
      now += time / 1000;
      if (gap > 1) now += ((gap - 1) * (this.step(row) || time)) / 1000;
      result[row - from] = now;
    }
    this.elapsed.put(from, result, 0);
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

  readOn(values, count) {
    const start = this.column.length;
    const result = new Float32Array(count - start);
    for (let row = start; row < count; row += 1) {
      const value = values[row];
      if (Number.isFinite(value)) {
        this.mean = this.weight * this.mean + (1 - this.weight) * value;
        this.known = this.weight * this.known + (1 - this.weight);
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
    const columns = {};
    for (const [name, packed] of Object.entries(message.columns)) {
      columns[name] = await numbersOf(packed, message.count);
    }
    this.take(message, columns);
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
