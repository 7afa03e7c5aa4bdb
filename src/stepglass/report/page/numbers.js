// Formats all numbers of the page. Durations, percents, losses, sizes and counts have the same
// format as in the sentences of `explain` (explain/render/languages.py); a test compares them.

const NBSP = "\u00a0";
// The page also has sentences from Python, which rounds ties to even and always groups thousands.
const AS_PYTHON = { roundingMode: "halfEven", useGrouping: "always" };

const formatters = new Map();

function number(value, digits = 0, options = {}) {
  if (value === null || value === undefined || !Number.isFinite(value)) return say("page-unknown");
  const key = `${language} ${digits} ${JSON.stringify(options)}`;
  if (!formatters.has(key)) {
    formatters.set(key, new Intl.NumberFormat(language, {
      minimumFractionDigits: digits, maximumFractionDigits: digits, ...AS_PYTHON, ...options,
    }));
  }
  return formatters.get(key).format(value);
}

// The number of decimals for this many significant digits.
function digitsFor(value, significant = 4) {
  const size = Math.abs(value);
  return size >= 10 ** (significant - 1) || size === 0
    ? 0 : Math.min(9, significant - 1 - Math.floor(Math.log10(size)));
}

// -- for sentences and tables -----------------------------------------------------------------------

const short = (value) => number(value, digitsFor(value, 3));
// Four decimals would show nothing of a very small loss.
const loss = (value) => number(value, value !== 0 && Math.abs(value) < 1e-3
  ? Math.min(8, 1 - Math.floor(Math.log10(Math.abs(value)))) : 4);
const whole = (value) => number(value, 0);
// A number that names one iteration has no separators: "iter 5000" can be searched in the log.
const named = (value) => number(value, 0, { useGrouping: false });
const percent = (value, digits = 1) => number(value / 100, digits, { style: "percent" });

function rate(value) {
  const notation = value !== 0 && Math.abs(value) < 1e-4 ? "scientific" : "standard";
  return number(value, notation === "standard" ? digitsFor(value, 3) : 2, { notation });
}

function bytes(value) {
  const units = language === "fr" ? ["o", "ko", "Mo", "Go", "To"] : ["B", "kB", "MB", "GB", "TB"];
  let place = 0;
  while (value >= 1000 && place < units.length - 1) { value /= 1000; place += 1; }
  return `${number(value, place ? 1 : 0)}${NBSP}${units[place]}`;
}

// A count of tokens or parameters: 10.65M, 10,65 Mio., 1,2 Md. Spanish counts in millions: 10.490 M.
function large(value) {
  if (Math.abs(value) < 1e6) return number(value, Number.isInteger(value) ? 0 : digitsFor(value, 4));
  if (language === "es") return `${number(value / 1e6, value < 1e9 ? 2 : 0)}${NBSP}M`;
  return compact(value, { maximumFractionDigits: 2 });
}

// Tokens per second: no decimals where they are noise.
const speed = (value) => large(value >= 100 ? Math.round(value) : value);

function compact(value, digits) {
  const options = { minimumFractionDigits: 0, notation: "compact", ...digits };
  return number(value, 0, options).replace(" ", NBSP);
}

// A number of floating-point operations.
function flops(value) {
  const units = ["", "k", "M", "G", "T", "P", "E", "Z"];
  let place = 0;
  while (Math.abs(value) >= 1000 && place < units.length - 1) { value /= 1000; place += 1; }
  return tick(value, `${units[place]}FLOP`);
}

// A duration in a suitable unit.
function duration(ms) {
  if (!Number.isFinite(ms)) return say("page-unknown");
  if (ms < 0.9995) return `${number(ms, 3)}${NBSP}ms`;
  if (ms < 999.5) return `${number(ms, ms >= 100 ? 1 : 2)}${NBSP}ms`;
  return elapsed(ms / 1000);
}

// Time since the start of the run, never in milliseconds.
function elapsed(seconds) {
  if (!Number.isFinite(seconds)) return say("page-unknown");
  if (seconds < 60) return `${number(seconds, seconds < 10 ? 2 : 1)}${NBSP}s`;
  const rounded = Math.round(seconds);
  const minutes = Math.floor(rounded / 60);
  if (minutes < 60) return `${minutes}${NBSP}min ${rounded % 60}${NBSP}s`;
  return `${whole(Math.floor(minutes / 60))}${NBSP}h ${minutes % 60}${NBSP}min`;
}

// A duration in seconds, for a table column with a sum: all rows need the same unit.
function secondsOf(ms) {
  return `${number(ms / 1000, 2)}${NBSP}s`;
}

// Date and time, from seconds since 1970.
function dateAndTime(seconds) {
  const style = { dateStyle: "long", timeStyle: "short" };
  return new Intl.DateTimeFormat(language, style).format(new Date(seconds * 1000));
}

// -- for an axis: no more digits than it needs --------------------------------------------------------

function tick(value, unit = "") {
  const notation = value !== 0 && Math.abs(value) < 1e-4 ? "scientific" : "standard";
  const options = { minimumFractionDigits: 0, maximumFractionDigits: 12, maximumSignificantDigits: 4, notation };
  return number(value, 0, options) + (unit && `${NBSP}${unit}`);
}

function largeTick(value) {
  return compact(value, { maximumFractionDigits: 12, maximumSignificantDigits: 4 });
}

function durationTick(ms) {
  return ms < 1000 ? tick(ms, "ms") : tick(ms / 1000, "s");
}

function percentTick(value) {
  return percent(value, digitsFor(value, 1));
}

// Whole seconds, minutes or hours, depending on the distance between two ticks.
function elapsedTick(seconds, step) {
  if (step < 60) return `${number(seconds, digitsFor(step, 1))}${NBSP}s`;
  if (step < 3600) return `${number(seconds / 60, step % 60 ? 1 : 0)}${NBSP}min`;
  return `${number(seconds / 3600, step % 3600 ? 1 : 0)}${NBSP}h`;
}
