// Columns of numbers that can grow, be truncated and be replaced in part.
// A long run does not have all its iterations here: a row also represents those dropped before it.
// `num` is how many iterations a row represents; columns `sum:...` have the sums of their values.

class Column {
  constructor(Type) {
    this.data = new Type(1024);
    this.length = 0;
  }

  cut(length) {
    this.length = Math.min(this.length, length);
  }

  // Writes numbers from `start` on. Earlier rows without a number get `empty`.
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

  // Replaces the numbers from `start` to `end`.
  splice(start, end, values) {
    const rest = this.data.slice(end, this.length);
    this.cut(start);
    this.put(start, values, NaN);
    this.put(this.length, rest, NaN);
  }
}

const isSum = (name) => name.startsWith("sum:") || name.startsWith("num");
const emptyOf = (name) => (name.startsWith(PHASE) || isSum(name) ? 0 : NaN);

// The column of sums for rows that represent only themselves.
function sumOf(name, columns, count) {
  if (name === "num") return new Float32Array(count).fill(1);
  const own = columns[name.slice(4)] ?? new Float32Array(count); // without "sum:" or "num:"
  const isKnown = name.startsWith("num:") ? () => 1 : (value) => value;
  return Float32Array.from(own, (value) => (Number.isFinite(value) ? isKnown(value) : 0));
}

// The first index whose value is not below `wanted`.
function lowerBound(values, count, wanted) {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
