// The sections of the page with text and tables. Each function makes the elements of one section,
// or none if there is nothing to show.

const LAST_DATE = 8e12; // seconds; JavaScript has no later dates
const MOST_SAMPLES = 50; // the latest samples are shown
const MOST_ABOUTS = 6; // lines about what a ledger covers, one per segment

function stateText(state) {
  const key = `page-state-${state.name}`;
  const name = say(key in WORDS[language] ? key : "page-state-unknown");
  return [
    state.name === "log" ? null : name, // nothing says how the run of a log ended
    progressText(state),
    state.left_ms === null ? null : say("page-left", { left: elapsed(state.left_ms / 1000) }),
  ].filter((text) => text !== null).join(", ");
}

// How far a run came: the number of its iterations, or if that is not known, the last one printed.
function progressText({ step, max_iters: max, iter }) {
  if (step === null) return Number.isFinite(iter) ? say("page-up-to", { number: named(iter) }) : null;
  return max !== null && step < max ? say("page-done-of", { count: step, max }) : say("page-done", { count: step });
}

function healthLine(runs) {
  return runs.filter((run) => run.story).map((run) => {
    const { health, state } = run.story;
    return make("p", { className: `health ${health.level}` },
      make("span", { className: "light" }, say(`page-level-${health.level}`)),
      make("span", {}, runs.length > 1 ? labelled(run.name, health.text[language]) : health.text[language]),
      make("span", { className: "state" }, stateText(state)));
  });
}

// The ledger of a run: the sum of the ledgers of its segments.
function ledgerOf(story) {
  const known = story.parts.filter((part) => part.ledger);
  if (!known.length) return null;
  const phases = new Map();
  for (const { ledger } of known) {
    for (const [name, ms] of Object.entries(ledger.phases)) phases.set(name, (phases.get(name) ?? 0) + ms);
  }
  const total = known.reduce((sum, part) => sum + part.ledger.total_ms, 0);
  const ledgers = known.map((part) => part.ledger);
  const [names, abouts] = ["name", "about"].map((key) => [...new Set(ledgers.map((l) => l[key][language]))]);
  return {
    phases,
    total,
    isWhole: ledgers.every((ledger) => ledger.wall_ms !== null),
    // Steps alone are not the whole run, so no share of them is shown.
    hasShares: phases.size > 1 && ledgers.every((ledger) => ledger.covers !== "steps"),
    name: names.length === 1 ? names[0] : say("total"),
    about: abouts.length <= MOST_ABOUTS ? abouts : [...abouts.slice(0, MOST_ABOUTS - 2), "…", abouts.at(-1)],
  };
}

function ledgerSection(runs) {
  return runs.filter((run) => run.story).flatMap((run) => {
    const ledger = ledgerOf(run.story);
    return ledger ? [make("div", { className: "ledger" },
      runs.length > 1 ? make("h3", {}, chip(ownColor(run)), run.name) : null,
      ledger.hasShares ? ledgerBar(ledger) : null,
      ledgerTable(ledger),
      make("div", { className: "caption" }, ...ledger.about.map((line) => make("div", {}, line))))] : [];
  });
}

function ledgerBar(ledger) {
  const share = (name) => (100 * ledger.phases.get(name)) / ledger.total;
  const text = (name) => `${phaseName(name)} ${percent(share(name))}`;
  const names = inStackOrder(ledger.phases.keys());
  const bar = make("div", { className: "bar" });
  bar.setAttribute("role", "img");
  bar.setAttribute("aria-label", names.map(text).join(", "));
  for (const name of names) {
    const piece = make("span", { title: text(name) }, share(name) > 7 ? percent(share(name), 0) : "");
    piece.style.flexGrow = String(share(name) / 100);
    piece.style.background = `var(--${phaseColor(name)})`;
    bar.append(piece);
  }
  return bar;
}

function ledgerTable({ phases, total, name, hasShares }) {
  const row = (heading, ms) => make("tr", {},
    make("th", { scope: "row" }, ...heading),
    make("td", {}, secondsOf(ms)),
    hasShares ? make("td", {}, percent((100 * ms) / total)) : null);
  const sorted = [...phases].sort(([, a], [, b]) => b - a);
  return make("table", { className: "sums" },
    make("tbody", {}, ...sorted.map(([phase, ms]) => row([chip(phaseColor(phase)), phaseName(phase)], ms))),
    phases.size > 1 ? make("tfoot", {}, row([name], total)) : null);
}

function findingsSection(runs) {
  return runs.filter((run) => run.story).flatMap((run) => {
    const { findings } = run.story;
    const list = findings.length
      ? make("ol", { className: "findings" }, ...findings.map(finding))
      : make("p", {}, say("no-findings"));
    return runs.length > 1 ? [make("h3", {}, chip(ownColor(run)), run.name), list] : [list];
  });
}

function finding(found) {
  return make("li", { className: found.level },
    make("h3", {}, found.title[language]),
    make("p", {}, found.text[language]),
    make("p", { className: "grade" }, found.grade[language]),
    found.change ? command(found.change) : null);
}

// A command, with a button to copy it.
function command(text) {
  const button = make("button", { type: "button" }, say("page-copy"));
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = say("page-copied");
    } catch {
      getSelection().selectAllChildren(code);
    }
  });
  const code = make("code", {}, text);
  return make("p", { className: "command" }, code, button);
}

function table(rows, className = "settings") {
  return make("table", { className }, make("tbody", {}, ...rows.map(([name, ...values]) =>
    make("tr", {}, make("th", { scope: "row" }, name), ...values.map((value) => make("td", {}, value))))));
}

// A fact about the machine or the model.
function fact(key, value) {
  if (typeof value !== "number") return value;
  if (key === "time" && Math.abs(value) < LAST_DATE) return dateAndTime(value);
  return key === "peak_tflops" ? short(value) : large(value);
}

function settingsSection(runs) {
  return runs.filter((run) => run.story).flatMap((run) => {
    const { config, environment } = run.story;
    const parts = [];
    const heading = (key) => (runs.length > 1 ? labelled(run.name, say(key)) : say(key));
    if (environment.length) {
      parts.push(make("details", { open: runs.length === 1 },
        make("summary", {}, heading("page-environment")),
        table(environment.map(([key, value]) => [key, fact(key, value)]))));
    }
    if (Object.keys(config).length) {
      parts.push(make("details", {},
        make("summary", {}, heading("page-config")), table(Object.entries(config))));
    }
    return parts;
  });
}

function cannotSection(told) {
  const lines = [...new Set(told.flatMap((run) => run.story.cannot.map((text) => text[language])))];
  return lines.length ? [make("ul", {}, ...lines.map((line) => make("li", {}, line)))] : [];
}

function samplesSection(runs) {
  const samples = runs.flatMap((run) => run.segments.flatMap((segment) =>
    segment.samples.map(([, iter, text]) => ({ run, iter, text }))));
  const heading = (run, where) => (runs.length > 1 ? labelled(run.name, where) : where);
  return samples.slice(-MOST_SAMPLES).reverse().map(({ run, iter, text }, i) =>
    make("details", { open: i === 0 },
      make("summary", {}, heading(run, say("page-iteration", { number: named(iter) }))),
      make("pre", {}, text)));
}

// -- several runs -----------------------------------------------------------------------------------

function outcome(run) {
  const part = run.story.parts.at(-1);
  const ledger = ledgerOf(run.story);
  const bests = run.story.parts.map((p) => p.best).filter(Boolean);
  const best = bests.sort((a, b) => a.val - b.val)[0];
  return [
    ["page-outcome-best", best ? `${loss(best.val)} (${named(best.iter)})` : say("page-unknown")],
    ["page-outcome-val", loss(part?.last_val)],
    ["page-outcome-loss", loss(part?.last_loss)],
    ["page-outcome-iters", named(part?.last_iter)],
    ["page-outcome-normal", duration(part?.normal_ms ?? NaN)],
    ["page-outcome-wall", ledger?.isWhole ? elapsed(ledger.total / 1000) : say("page-unknown")],
    ["page-outcome-mfu", percent(part?.mfu.corrected ?? part?.mfu.clean ?? NaN, 2)],
  ];
}

function compareSection(runs) {
  const told = runs.filter((run) => run.story);
  if (told.length < 2) return [];
  const outcomes = told.map(outcome);
  const names = [...new Set(told.flatMap((run) => Object.keys(run.story.config)))].sort();
  // A setting that only one log states is not a difference: the other log may not print it.
  const different = names.filter((name) =>
    new Set(told.map((run) => run.story.config[name]).filter((value) => value !== undefined)).size > 1);
  const head = make("tr", {}, make("th", {}), ...told.map((run) =>
    make("th", { scope: "col" }, chip(ownColor(run)), run.name)));
  const row = (name, values) => make("tr", {}, make("th", { scope: "row" }, name),
    ...values.map((value) => make("td", {}, value)));
  const body = [
    ...outcomes[0].map(([key], i) => row(say(key), outcomes.map((list) => list[i][1]))),
    ...different.map((name) => row(name, told.map((run) => run.story.config[name] ?? say("page-unknown")))),
  ];
  return [make("div", { className: "scroll" },
    make("table", { className: "compare" }, make("thead", {}, head), make("tbody", {}, ...body)))];
}
