// The sections of the page with text and tables. Each function makes the elements of one section,
// or none if there is nothing to show.

const LAST_DATE = 8e12; // seconds; JavaScript has no later dates
const MOST_ABOUTS = 6; // lines about what a ledger covers, one per segment

// The ledger of a run: the sum of the ledgers of its segments.
function ledgerOf(story) {
  const known = story.parts.filter((part) => part.ledger);
  if (!known.length) return null;
  const sums = (pick) => {
    const found = new Map();
    for (const { ledger } of known) {
      for (const [name, ms] of Object.entries(pick(ledger))) found.set(name, (found.get(name) ?? 0) + ms);
    }
    return found;
  };
  const phases = sums((ledger) => ledger.phases);
  const total = known.reduce((sum, part) => sum + part.ledger.total_ms, 0);
  const ledgers = known.map((part) => part.ledger);
  const [names, abouts] = ["name", "about"].map((key) => [...new Set(ledgers.map((l) => l[key][language]))]);
  return {
    phases,
    // What of a phase several processes have waited, by phase.
    within: new Map([...phases.keys()].map((phase) => [phase, sums((ledger) => ledger.within[phase] ?? {})])),
    total,
    isWhole: ledgers.every((ledger) => ledger.wall_ms !== null),
    // Steps alone are not the whole run, so no share of them is shown.
    hasShares: phases.size > 1 && ledgers.every((ledger) => ledger.covers !== "steps"),
    name: names.length === 1 ? names[0] : say("total"),
    about: abouts.length <= MOST_ABOUTS ? abouts : [...abouts.slice(0, MOST_ABOUTS - 2), "…", abouts.at(-1)],
  };
}

function ledgerSection(runs) {
  const known = runs.filter((run) => run.story).map((run) => ({ run, ledger: ledgerOf(run.story) }))
    .filter(({ ledger }) => ledger);
  if (runs.length > 1) return known.length ? comparedLedgers(known) : [];
  return known.map(({ ledger }) => make("div", { className: "ledger" },
    ledger.hasShares ? ledgerBar(ledger) : null, ledgerTable(ledger),
    make("div", { className: "caption" }, ...ledger.about.map((line) => make("div", {}, line)))));
}

// Several runs: a bar for each, and one table of all.
function comparedLedgers(known) {
  const names = inStackOrder(new Set(known.flatMap(({ ledger }) => [...ledger.phases.keys()])));
  const cell = ({ phases, total, hasShares }, name) => {
    const ms = phases.get(name);
    if (ms === undefined) return "";
    return hasShares ? `${secondsOf(ms)} · ${percent((100 * ms) / total)}` : secondsOf(ms);
  };
  const row = (heading, texts) => make("tr", {}, make("th", { scope: "row" }, ...heading),
    ...texts.map((text) => make("td", {}, text)));
  const bars = known.filter(({ ledger }) => ledger.hasShares).flatMap(({ run, ledger }) =>
    [make("span", {}, chip(ownColor(run)), run.name), ledgerBar(ledger)]);
  return [
    make("div", { className: "ledger bars" }, ...bars),
    make("div", { className: "scroll" }, make("table", { className: "sums" },
      make("thead", {}, row([""], known.map(({ run }) => run.name))),
      make("tbody", {}, ...names.map((name) => row([chip(phaseColor(name)), phaseName(name)],
        known.map(({ ledger }) => cell(ledger, name))))),
      make("tfoot", {}, row([say("total")], known.map(({ ledger }) => secondsOf(ledger.total)))))),
    ...comparedAbouts(known),
  ];
}

// What the ledgers cover. If all cover the same, that is said once.
function comparedAbouts(known) {
  const texts = known.map(({ ledger }) => ledger.about.join(" "));
  const isSame = new Set(texts).size === 1;
  return known.slice(0, isSame ? 1 : known.length).map(({ run }, i) => make("div", { className: "caption" },
    ...(isSame ? [texts[i]] : [chip(ownColor(run)), labelled(run.name, texts[i])])));
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

function ledgerTable({ phases, within, total, name, hasShares }) {
  const row = (heading, ms, className = "") => make("tr", { className },
    make("th", { scope: "row" }, ...heading),
    make("td", {}, secondsOf(ms)),
    hasShares ? make("td", {}, percent((100 * ms) / total)) : null);
  const sorted = [...phases].sort(([, a], [, b]) => b - a);
  return make("table", { className: "sums" },
    make("tbody", {}, ...sorted.flatMap(([phase, ms]) => [
      row([chip(phaseColor(phase)), phaseName(phase)], ms),
      ...[...within.get(phase)].map(([part, of]) => row([say(`within-${part}`)], of, "within")),
    ])),
    phases.size > 1 ? make("tfoot", {}, row([name], total)) : null);
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
