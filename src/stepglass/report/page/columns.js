// Columns of numbers that grow, are cut off and are replaced in part.
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

  // Puts numbers from `start` on. Rows before it that have none yet get `empty`.
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

  // Replaces some numbers by others.
  splice(start, end, values) {
    const rest = this.data.slice(end, this.length);
    this.cut(start);
    this.put(start, values, NaN);
    this.put(this.length, rest, NaN);
  }
}

const isSum = (name) => name.startsWith("sum:") || name.startsWith("num");
const emptyOf = (name) => (name.startsWith(PHASE) || isSum(name) ? 0 : NaN);

// The column of sums for rows that stand only for themselves.
function sumOf(name, columns, count) {
  if (name === "num") return new Float32Array(count).fill(1);
  const own = columns[name.slice(4)] ?? new Float32Array(count); // behind "sum:" and "num:"
  const isKnown = name.startsWith("num:") ? () => 1 : (value) => value;
  return Float32Array.from(own, (value) => (Number.isFinite(value) ? isKnown(value) : 0));
}

// The first place whose value is not below the wanted one.
function lowerBound(values, count, wanted) {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
