// Decodes columns of numbers from a file or a server (encoded by report/pack.py).

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

// In a file, the first bytes of all numbers are stored together, then the second bytes, and so on,
// because that compresses well.
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
