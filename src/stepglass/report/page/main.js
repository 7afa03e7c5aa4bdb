// The page itself: put together once, filled again when the language or the run changes.

const REDRAW_MS = 500; // a live page takes turns with the training it looks at
const MOST_ROWS = 200_000; // a page that was open for so long, or zoomed so often, begins anew

const view = new View();
const charts = {};
const parts = {};

function toolbar() {
  const button = (text, key, act) => {
    const element = make("button", { type: "button", title: say(key) }, text);
    element.setAttribute("aria-label", say(key));
    element.addEventListener("click", act);
    return element;
  };
  const axis = make("select", {},
    make("option", { value: "iter", selected: view.axis === "iter" }, say("page-axis-iter")),
    make("option", { value: "time", selected: view.axis === "time" }, say("page-axis-time")));
  axis.setAttribute("aria-label", say("page-axis"));
  axis.id = "axis";
  axis.disabled = !hasTimes();
  axis.addEventListener("change", () => { view.axis = axis.value; view.show(null); });
  const slider = make("input", { type: "range", min: 0, max: 99, value: 100 * view.smoothing, id: "smoothing" });
  slider.addEventListener("input", () => { view.smoothing = slider.value / 100; charts.loss.ask(); });
  return [
    make("label", {}, say("page-axis"), axis),
    make("span", { className: "group" },
      button("−", "page-zoom-out", () => view.scale(2)),
      button("+", "page-zoom-in", () => view.scale(0.5)),
      button("◀", "page-left-key", () => view.move(-0.5)),
      button("▶", "page-right-key", () => view.move(0.5)),
      button(say("page-reset"), "page-reset", () => view.show(null))),
    make("label", {}, say("page-smoothing"), slider),
    make("output", { id: "range" }),
    make("p", { id: "thinned", className: "caption" }),
  ];
}

function hasTimes() {
  return view.runs.some((run) => run.has("time_ms"));
}

function showRange() {
  const [from, to] = view.range();
  const show = (value) => (view.axis === "time" ? seconds(value) : whole(value));
  setText(document.getElementById("range"), view.runs.length ? `${show(from)} – ${show(to)}` : "");
  setText(document.getElementById("thinned"), thinnedText());
}

// A text that is the same is left alone: the browser would lay the page out anew.
function setText(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

function section(name, key, ...children) {
  parts[name] = make("div", {});
  const heading = make("h2", {});
  const element = make("section", { id: name }, heading, parts[name], ...children);
  element.words = () => { heading.textContent = key ? say(key) : ""; heading.hidden = !key; };
  return element;
}

function build() {
  Object.assign(charts, allCharts(view));
  const small = (...names) => make("div", { className: "grid" }, ...names.map((name) => charts[name].element));
  const main = document.querySelector("main");
  main.replaceChildren(
    section("health", ""),
    section("compare", "page-compare"),
    make("nav", { id: "toolbar" }),
    section("loss", "page-loss", charts.loss.element),
    section("ledger", "where-title", charts.shares.element),
    section("iterations", "page-iterations", charts.time.element),
    section("speed", "page-speed", small("tokens", "mfu")),
    section("inside", "page-inside", small("lr", "grad", "memory")),
    section("findings", "findings-title"),
    section("samples", "page-samples"),
    section("settings", "page-settings"),
    section("cannot", "cannot-title"));
  view.onChange = showRange;
}

// Everything that is words, again.
function fill() {
  for (const element of document.querySelectorAll("main > section")) element.words();
  for (const chart of view.charts) chart.label();
  document.getElementById("toolbar").replaceChildren(...toolbar());
  shown.clear();
  news();
  legends();
  view.changed();
}

const shown = new Map(); // what each section was made from

// What has changed of what is said.
function news() {
  const { runs } = view;
  const told = runs.filter((run) => run.story);
  const each = (pick) => told.map((run) => pick(run.story));
  renew("health", each((story) => [story.health, story.state]), () => healthLine(runs));
  renew("compare", told.length > 1, () => compareSection(runs));
  renew("ledger", each((story) => story.parts.map((part) => part.ledger)), () => ledgerSection(runs));
  renew("findings", each((story) => story.findings), () => findingsSection(runs));
  renew("samples", runs.map((run) => run.segments.map((s) => s.samples.length)), () => samplesSection(runs));
  renew("settings", each((story) => [story.config, story.environment]), () => settingsSection(runs));
  renew("cannot", each((story) => story.cannot), () => cannotSection(told));
  if (isOther("best", each((story) => story.parts.map((part) => part.best)))) charts.loss.ask();
  if (isOther("stalls", each((story) => story.parts.map((part) => part.stalls)))) charts.time.ask();
  header(told);
}

function isOther(name, source) {
  const text = JSON.stringify([language, source]);
  if (shown.get(name) === text) return false;
  shown.set(name, text);
  return true;
}

function renew(name, source, make) {
  if (!isOther(name, source)) return;
  const children = make();
  parts[name].replaceChildren(...children);
  document.getElementById(name).hidden = !children.length && name !== "ledger";
}

function cannotSection(told) {
  const lines = [...new Set(told.flatMap((run) => run.story.cannot.map((text) => text[language])))];
  return lines.length ? [make("ul", {}, ...lines.map((line) => make("li", {}, line)))] : [];
}

function legends() {
  const entry = (color, text) => make("span", {}, chip(color), text);
  const perRun = view.runs.length > 1
    ? view.runs.map((run) => entry(`run-${run.number % 8}`, run.name)) : null;
  charts.loss.legend.replaceChildren(...(perRun
    ? [...perRun, make("span", {}, say("page-dashed"))]
    : [entry("train", say("page-train")), entry("val", say("page-val"))]));
  const phases = byOrder(new Set([...segments(view)].flatMap((segment) =>
    segment.phases.map((name) => name.slice("phase:".length)))));
  charts.shares.legend.replaceChildren(...phases.map((name) => entry(phaseColor(name), phaseName(name))));
  const reasons = phases.filter((name) => !["log", "gc", "other"].includes(name) && !STEP_PHASES.has(`phase:${name}`));
  charts.time.legend.replaceChildren(...(perRun?.map((e) => e.cloneNode(true)) ?? []),
    ...[...new Set([...reasons, "stall"])].map((name) => entry(phaseColor(name), phaseName(name))));
  for (const name of ["tokens", "mfu", "lr", "grad", "memory"]) charts[name].legend.replaceChildren(...(perRun ? perRun.map((e) => e.cloneNode(true)) : []));
}

function header(told) {
  const names = told.map((run) => run.name).join(" / ");
  const title = names ? `${names} · Stepglass` : "Stepglass";
  if (document.title !== title) document.title = title;
  setText(document.getElementById("title"), names || "Stepglass");
  const only = told.length === 1 ? told[0].story : null;
  setText(document.getElementById("about"), only && !view.isLive
    ? say("page-about", { format: only.format, lines: whole(only.lines.total), understood: whole(only.lines.understood) })
    : "");
}

function languageChoice() {
  const choice = document.getElementById("language");
  choice.replaceChildren(...Object.keys(WORDS).map((code) =>
    make("option", { value: code, selected: code === language }, WORDS[code]["page-language"])));
  choice.addEventListener("change", () => {
    setLanguage(choice.value);
    remember(language);
    choice.setAttribute("aria-label", say("page-language-choice"));
    if (charts.loss) fill(); else listRuns.again?.();
  });
}

function remember(code) {
  try { localStorage.setItem("stepglass-language", code); } catch { /* a page from disk may not */ }
}

function firstLanguage() {
  const asked = document.body.dataset.language;
  if (asked && asked !== "auto") return asked;
  try {
    const before = localStorage.getItem("stepglass-language");
    if (before) return before;
  } catch { /* the same */ }
  const known = navigator.languages.map((code) => code.slice(0, 2)).find((code) => code in WORDS);
  return known ?? "en";
}

// -- a file -----------------------------------------------------------------------------------------

async function openReport() {
  const { runs } = JSON.parse(document.getElementById("story").textContent);
  view.runs = runs.map(({ story }, i) => {
    const run = new Run(i);
    run.isCompared = runs.length > 1;
    run.tell(story);
    return run;
  });
  build();
  fill();
  // Rows come after the words, the most wanted first: there is something to see at once.
  for (const [i, { messages }] of runs.entries()) {
    for (const message of messages) {
      const columns = {};
      for (const [name, column] of Object.entries(message.columns)) {
        columns[name] = await numbersOf(await stored(column), message.count);
        if (name !== "loss" && name !== "time_ms") continue;
        view.runs[i].take(message, columns);
        view.changed();
        await frame();
      }
      view.runs[i].take(message, columns);
    }
  }
  fill();
  document.body.dataset.ready = "yes";
}

// Long texts stand in elements of their own, further down in the file: what follows one of them
// says that it is whole.
async function stored(column) {
  if (!("at" in column)) return column;
  const element = () => document.getElementById(column.at);
  while (document.readyState === "loading" && !element()?.nextElementSibling) await frame();
  return { [column.kind]: element().textContent };
}

const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

// -- a server ---------------------------------------------------------------------------------------

function follow(address) {
  const url = `${address}/events`;
  let run = new Run(0);
  view.runs = [run];
  build();
  fill();
  let [isNews, isReset, timer, last, source] = [false, true, null, 0, null];
  const refiner = new Refiner(view, `${address}/rows`, () => { view.numShown = run.numRows; view.changed(); });
  view.onChange = () => { showRange(); refiner.soon(); };
  const redraw = () => {
    clearTimeout(timer);
    timer = null;
    if (document.hidden) return;
    last = performance.now();
    const wasLive = view.isLive;
    view.isLive = run.story?.state.name === "running";
    if (isNews) news();
    legendsIfNew();
    document.getElementById("axis").disabled = !hasTimes();
    if (isReset || wasLive !== view.isLive) view.changed(); else view.grown();
    const wasReset = isReset;
    isNews = isReset = false;
    if (wasReset) document.body.dataset.ready = "yes";
    view.numShown = run.numRows;
    if (run.numRows > MOST_ROWS) follow.again();
  };
  const soon = () => {
    const wait = last + REDRAW_MS - performance.now();
    if (wait <= 0) redraw(); else timer ??= setTimeout(redraw, wait);
  };
  let seen = "";
  let working = Promise.resolve();
  const on = (name, act) => source.addEventListener(name, (event) => {
    // One after the other: a column takes a moment to be read.
    working = working.then(() => act(JSON.parse(event.data)))
      .then(() => { seen = event.lastEventId; soon(); })
      .catch((error) => console.error(error)); // what comes next may be better
  });
  const connect = () => {
    source?.close();
    if (document.hidden) return; // whoever looks at it connects it
    source = new EventSource(seen ? `${url}?after=${encodeURIComponent(seen)}` : url);
    source.addEventListener("open", () => connection("page-live"));
    source.addEventListener("error", () => {
      connection("page-lost");
      if (source.readyState === EventSource.CLOSED) setTimeout(connect, 1000);
    });
    on("reset", () => { run = new Run(0); view.runs = [run]; isNews = isReset = true; refiner.forget(); });
    on("rows", (message) => run.rows(message));
    on("story", (story) => { run.tell(story); isNews = true; });
  };
  follow.again = () => { seen = ""; connect(); };
  connect();
  // Browsers keep few connections: a page that nobody looks at gives its one back.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) source?.close();
    else { connect(); soon(); }
  });
}

let shownPhases = "";
function legendsIfNew() {
  const now = [...segments(view)].map((segment) => segment.phases.join()).join(";");
  if (now !== shownPhases) { shownPhases = now; legends(); }
}

function connection(key) {
  const element = document.getElementById("connection");
  element.dataset.key = key;
  element.className = key;
  element.textContent = say(key);
}

async function listRuns() {
  const main = document.querySelector("main");
  const show = async () => {
    let runs;
    try {
      runs = await (await fetch("/runs.json")).json();
      connection("page-live");
    } catch {
      connection("page-lost");
      return;
    }
    const rows = runs.map((run) => make("tr", {},
      make("th", { scope: "row" }, make("a", { href: `/run/${run.id}` }, run.name)),
      make("td", {}, stateText({ ...run, name: run.state, left_ms: null })),
      make("td", {}, loss(run.best_val_loss))));
    const head = make("tr", {}, ...["page-run", "page-state", "page-outcome-best"].map((key) =>
      make("th", { scope: "col" }, say(key))));
    main.replaceChildren(make("section", {}, make("h2", {}, say("page-runs")), rows.length
      ? make("table", { className: "compare" }, make("thead", {}, head), make("tbody", {}, ...rows))
      : make("p", {}, say("page-no-runs"))));
    document.body.dataset.ready = "yes";
  };
  listRuns.again = show;
  await show();
  setInterval(() => { if (!document.hidden) show(); }, 3000);
}

async function openLive() {
  const found = location.pathname.match(/^\/run\/(\d+)$/);
  if (found) return follow(`/run/${found[1]}`);
  const runs = await (await fetch("/runs.json")).json();
  if (runs.length === 1 && location.search !== "?list") return follow(`/run/${runs[0].id}`);
  return listRuns();
}

setLanguage(firstLanguage());
languageChoice();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  colors.known.clear();
  view.changed();
});
// Paper shows everything, also what was never scrolled to.
addEventListener("beforeprint", () => {
  colors.known.clear();
  for (const chart of view.charts) chart.draw();
});
if (document.body.dataset.mode === "live") openLive(); else openReport();
