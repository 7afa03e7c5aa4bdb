// The sections of the page with text and tables. Each function makes the elements of one section,
// or none if there is nothing to show.

const LAST_DATE = 8e12; // seconds; JavaScript has no later dates
const MOST_SAMPLES = 50; // the latest samples are shown

function stateText(state) {
  const values = {
    step: state.step === null ? say("page-unknown") : whole(state.step),
    max: state.max_iters === null ? say("page-unknown") : whole(state.max_iters),
    left: state.left_ms === null ? "" : elapsed(state.left_ms / 1000),
  };
  const key = `page-state-${state.name}`;
  const text = say(key in WORDS[language] ? key : "page-state-log", values);
  return state.left_ms === null ? text : `${text}, ${say("page-left", values)}`;
}

function healthLine(runs) {
  return runs.filter((run) => run.story).map((run) => {
    const { health, state } = run.story;
    return make("p", { className: `health ${health.level}` },
      make("span", { className: "light" }, say(`page-level-${health.level}`)),
      make("span", {}, runs.length > 1 ? `${run.name}: ${health.text[language]}` : health.text[language]),
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
  const wall = known.reduce((sum, part) => sum + part.ledger.wall_ms, 0);
  return { phases, wall, basis: known.at(-1).ledger.basis };
}

function ledgerSection(runs) {
  const blocks = runs.filter((run) => run.story).map((run) => {
    const ledger = ledgerOf(run.story);
    if (!ledger) return null;
    const names = inStackOrder(ledger.phases.keys());
    const bar = make("div", { className: "bar" });
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", names.map((name) =>
      `${phaseName(name)} ${percent((100 * ledger.phases.get(name)) / ledger.wall)}`).join(", "));
    for (const name of names) {
      const share = ledger.phases.get(name) / ledger.wall;
      const piece = make("span", { title: `${phaseName(name)} ${percent(100 * share)}` },
        share > 0.07 ? percent(100 * share, 0) : "");
      piece.style.flexGrow = String(share);
      piece.style.background = `var(--${phaseColor(name)})`;
      bar.append(piece);
    }
    const rows = [...names].sort((a, b) => ledger.phases.get(b) - ledger.phases.get(a)).map((name) =>
      make("tr", {},
        make("th", { scope: "row" }, chip(phaseColor(name)), phaseName(name)),
        make("td", {}, secondsOf(ledger.phases.get(name))),
        make("td", {}, percent((100 * ledger.phases.get(name)) / ledger.wall))));
    return make("div", { className: "ledger" },
      runs.length > 1 ? make("h3", {}, chip(ownColor(run)), run.name) : null,
      bar,
      make("table", { className: "sums" },
        make("tbody", {}, ...rows),
        make("tfoot", {}, make("tr", {},
          make("th", { scope: "row" }, say("wall-clock")),
          make("td", {}, secondsOf(ledger.wall)),
          make("td", {}, percent(100))))),
      make("p", { className: "caption" }, say(`basis-${ledger.basis}`)));
  });
  return blocks.filter(Boolean);
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
  const cited = found.lines.length
    ? `, ${say("page-lines", { lines: found.lines.map((line) => whole(line)).join("; ") })}` : "";
  return make("li", { className: found.level },
    make("h3", {}, found.title[language]),
    make("p", {}, found.text[language]),
    make("p", { className: "grade" },
      `${say(`level-${found.level}`)}, ${say(`status-${found.status}`)}${cited}`),
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
    const heading = (key) => (runs.length > 1 ? `${run.name}: ${say(key)}` : say(key));
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
  return samples.slice(-MOST_SAMPLES).reverse().map(({ run, iter, text }, i) =>
    make("details", { open: i === 0 },
      make("summary", {}, `${runs.length > 1 ? `${run.name}: ` : ""}${say("page-iteration", { number: whole(iter) })}`),
      make("pre", {}, text)));
}

// -- several runs -----------------------------------------------------------------------------------

function outcome(run) {
  const part = run.story.parts.at(-1);
  const ledger = ledgerOf(run.story);
  const bests = run.story.parts.map((p) => p.best).filter(Boolean);
  const best = bests.sort((a, b) => a.val - b.val)[0];
  return [
    ["page-outcome-best", best ? `${loss(best.val)} (${whole(best.iter)})` : say("page-unknown")],
    ["page-outcome-val", loss(part?.last_val)],
    ["page-outcome-loss", loss(part?.last_loss)],
    ["page-outcome-iters", whole(part?.last_iter)],
    ["page-outcome-normal", duration(part?.normal_ms ?? NaN)],
    ["page-outcome-wall", ledger ? elapsed(ledger.wall / 1000) : say("page-unknown")],
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
