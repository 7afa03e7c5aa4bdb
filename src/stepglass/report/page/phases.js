// The phases of an iteration. PHASES comes from Python (report/phases.py), in the order in which
// phases are stacked: [{ name, isStep, isMinor }]. The position of a phase determines its colour
// (page.css). Its name is in the catalogues.

const PHASE = "phase:"; // the prefix of a column's name
const NUM_COLORS = 16; // phase colours in page.css

function phaseColor(name) {
  const place = PHASES.findIndex((phase) => phase.name === name);
  return place < 0 ? phaseColor("other") : `phase-${place % NUM_COLORS}`;
}

function phaseName(name) {
  const key = `phase-${name.replace("+", "-")}`;
  return key in WORDS[language] ? say(key) : name;
}

// Unknown phases come last.
function inStackOrder(names) {
  const known = PHASES.map((phase) => phase.name);
  const place = (name) => (known.includes(name) ? known.indexOf(name) : known.length);
  return [...names].sort((a, b) => place(a) - place(b));
}

const STEP_PHASES = new Set(PHASES.filter((phase) => phase.isStep).map((phase) => phase.name));
const MINOR_PHASES = new Set(PHASES.filter((phase) => phase.isMinor).map((phase) => phase.name));

// Names of all phases that occur in these segments.
function phasesOf(segments) {
  const columns = new Set(segments.flatMap((segment) => segment.phases));
  return inStackOrder([...columns].map((column) => column.slice(PHASE.length)));
}
