// The page. It is built once. Its texts are updated when the language or the run changes.

const view = new View();
const charts = {}; // by id
const parts = {}; // the element with the texts of each section
const shown = new Map(); // the data that each section was made from

// [name, key of its heading]. The toolbar is placed before the first section with charts.
const SECTIONS = [
  ["health", ""],
  ["compare", ""],
  ["loss", "page-loss"],
  ["ledger", "where-title"],
  ["ranks", "page-ranks"],
  ["iterations", "page-iterations"],
  ["speed", "page-speed"],
  ["inside", "page-inside"],
  ["findings", "findings-title"],
  ["samples", "page-samples"],
  ["settings", "page-settings"],
  ["cannot", "cannot-title"],
];

function section(name, key) {
  parts[name] = make("div", {});
  const heading = make("h2", {});
  const element = make("section", { id: name }, heading, parts[name], chartsOf(name));
  element.words = () => { heading.textContent = key ? say(key) : ""; heading.hidden = !key; };
  return element;
}

// The charts of a section. If there are several, they are side by side.
function chartsOf(name) {
  const elements = CHARTS.filter((spec) => spec.section === name).map((spec) => charts[spec.id].element);
  return elements.length > 1 ? make("div", { className: "grid" }, ...elements) : elements[0];
}

function build() {
  for (const spec of CHARTS) charts[spec.id] = new (spec.Type ?? Chart)(view, spec);
  const sections = SECTIONS.map(([name, key]) => section(name, key));
  document.querySelector("main").replaceChildren(...sections);
  const first = sections.find((element) => element.querySelector("figure"));
  first.before(make("nav", { id: "toolbar" }));
  view.onChange = showRange;
}

// Updates all texts.
function fill() {
  for (const element of document.querySelectorAll("main > section")) element.words();
  for (const chart of view.charts) chart.label();
  document.getElementById("toolbar").replaceChildren(...toolbar());
  shown.clear();
  news();
  legends();
  view.changed();
}

// Updates the texts whose data has changed.
function news() {
  const { runs } = view;
  const told = runs.filter((run) => run.story);
  const each = (pick) => told.map((run) => pick(run.story));
  headline();
  renew("compare", told.length > 1 && each((story) => [story.name, story.health, story.state, story.parts]), () => compareSection(runs));
  renew("ledger", each((story) => story.parts.map((part) => part.ledger)), () => ledgerSection(runs));
  renew("ranks", each((story) => [ranksOf(story), story.findings.find((found) => found.rule === "straggler")]), () => ranksSection(runs));
  renew("findings", each((story) => story.findings), () => findingsSection(runs));
  renew("samples", runs.map((run) => run.segments.map((s) => [s.samples.length, s.evals.length])), () => samplesSection(runs));
  renew("settings", each((story) => [story.config, story.environment]), () => settingsSection(runs));
  renew("cannot", each((story) => story.cannot), () => cannotSection(told));
  for (const { follows, id } of CHARTS) if (follows && isOther(`chart-${id}`, each(follows))) charts[id].ask();
  header(told);
}

// Updates the line about the run's health and its figures.
function headline() {
  const runs = view.runs.filter((run) => run.story);
  const source = runs.length === 1 && [runs[0].story.health, stateNow(runs[0]), figuresOf(runs[0])];
  renew("health", source, () => healthSection(view.runs));
}

function isOther(name, source) {
  const text = JSON.stringify([language, source]);
  if (shown.get(name) === text) return false;
  shown.set(name, text);
  return true;
}

function renew(name, source, makeChildren) {
  if (!isOther(name, source)) return;
  const children = makeChildren();
  parts[name].replaceChildren(...children);
  document.getElementById(name).hidden = !children.length && name !== "ledger";
}

function legends() {
  for (const chart of view.charts) {
    chart.legend.replaceChildren(...(chart.spec.legend?.(view) ?? []));
  }
  document.getElementById("legend").replaceChildren(...runLegend(view));
}

function header(told) {
  const names = told.map((run) => run.name).join(" / ");
  const title = names ? `${names} · Stepglass` : "Stepglass";
  if (document.title !== title) document.title = title;
  setText(document.getElementById("title"), names || "Stepglass");
  const only = told.length === 1 ? told[0].story : null;
  const about = document.getElementById("about");
  if (/^\/(run|compare)\//.test(location.pathname)) about.replaceChildren(make("a", { href: "/?list" }, say("page-runs")));
  else {
    setText(about, only && !view.isLive
      ? say("page-about", { format: only.format, lines: only.lines.total, understood: only.lines.understood }) : "");
  }
}
