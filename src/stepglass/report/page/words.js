// Words and numbers in the language the page is read in. WORDS comes from the catalogues.

let language = "en";

function setLanguage(code) {
  language = code in WORDS ? code : "en";
  document.documentElement.lang = language;
}

// A sentence by its key, with its {values} put in.
function say(key, values = {}) {
  const text = WORDS[language][key] ?? key;
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? values[name] : whole));
}

const formatters = new Map();

function number(value, digits = 0, options = {}) {
  if (value === null || value === undefined || !Number.isFinite(value)) return say("page-unknown");
  const key = `${language} ${digits} ${JSON.stringify(options)}`;
  if (!formatters.has(key)) {
    formatters.set(key, new Intl.NumberFormat(language, {
      minimumFractionDigits: digits, maximumFractionDigits: digits, ...options,
    }));
  }
  return formatters.get(key).format(value);
}

function digitsFor(value, significant = 4) {
  const size = Math.abs(value);
  return size >= 10 ** (significant - 1) || size === 0
    ? 0 : Math.min(9, significant - 1 - Math.floor(Math.log10(size)));
}

const short = (value) => number(value, digitsFor(value, 3));
const loss = (value) => number(value, 4);
const whole = (value) => number(value, 0);
const percent = (value, digits = 1) => number(value / 100, digits, { style: "percent" });

// For an axis: no more digits than it needs.
function tidy(value, unit = "") {
  const notation = value !== 0 && Math.abs(value) < 1e-4 ? "scientific" : "standard";
  const options = { minimumFractionDigits: 0, maximumFractionDigits: 12, maximumSignificantDigits: 4, notation };
  return number(value, 0, options) + (unit && `\u00a0${unit}`);
}

function rate(value) {
  const notation = value !== 0 && Math.abs(value) < 1e-4 ? "scientific" : "standard";
  return number(value, notation === "standard" ? digitsFor(value, 3) : 2, { notation });
}

function bytes(value) {
  const units = language === "fr" ? ["o", "ko", "Mo", "Go", "To"] : ["B", "kB", "MB", "GB", "TB"];
  let place = 0;
  while (value >= 1000 && place < units.length - 1) { value /= 1000; place += 1; }
  return `${number(value, place ? 1 : 0)}\u00a0${units[place]}`;
}

function large(value) {
  for (const [unit, scale] of [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e4]]) {
    if (Math.abs(value) >= scale) {
      const by = unit === "k" ? 1e3 : scale;
      return `${number(value / by, 1)}\u00a0${unit}`;
    }
  }
  return number(value, Number.isInteger(value) ? 0 : digitsFor(value, 4));
}

function largeTick(value) {
  const [unit, scale] = [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3], ["", 1]].find(([, s]) => value >= s) ?? ["", 1];
  return tidy(value / scale, unit);
}

function milliseconds(ms) {
  if (!Number.isFinite(ms)) return say("page-unknown");
  if (ms < 999.5) return `${number(ms, ms >= 100 ? 1 : 2)}\u00a0ms`;
  return seconds(ms / 1000);
}

function seconds(value) {
  if (!Number.isFinite(value)) return say("page-unknown");
  if (value < 60) return `${number(value, value < 10 ? 2 : 1)}\u00a0s`;
  const minutes = Math.floor(value / 60);
  if (minutes < 60) return `${minutes}\u00a0min ${Math.round(value % 60)}\u00a0s`;
  return `${whole(Math.floor(minutes / 60))}\u00a0h ${minutes % 60}\u00a0min`;
}

function millisecondsTick(ms) {
  return ms < 1000 ? tidy(ms, "ms") : tidy(ms / 1000, "s");
}

// For an axis: round seconds, minutes or hours.
function secondsTick(value, step) {
  if (step < 60) return `${number(value, digitsFor(step, 1))}\u00a0s`;
  if (step < 3600) return `${number(value / 60, step % 60 ? 1 : 0)}\u00a0min`;
  return `${number(value / 3600, step % 3600 ? 1 : 0)}\u00a0h`;
}
