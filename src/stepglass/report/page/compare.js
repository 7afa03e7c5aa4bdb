// Several runs: which is best, how they differ, and what they have in common.

const FEW_SETTINGS = 4; // that differ: they are columns beside the losses, more have a table of their own
const OPEN_SETTINGS = 8; // a longer table would push the curves off the screen
const MOST_SETTINGS = 40;

// What runs are ranked by, and null if their losses may not be of the same data.
function rankedBy(runs) {
  const all = (pick) => runs.every((run) => Number.isFinite(pick(run)));
  if (all((run) => bitsPerByte(run, run.best))) return "bits";
  const kinds = (key) => new Set(runs.map((run) => run.story.config[key]).filter((value) => value !== undefined));
  const sizes = new Set(runs.map((run) => run.story.parts.at(-1)?.vocab_size).filter(Boolean));
  if (kinds("dataset").size > 1 || sizes.size > 1) return null;
  const areAlike = new Set(runs.map((run) => run.story.format)).size === 1;
  if (!areAlike && !runs.every((run) => "dataset" in run.story.config)) return null;
  return runs.some((run) => run.best) ? "best" : "loss";
}

function scoreOf(run, by) {
  const value = { bits: () => bitsPerByte(run, run.best), best: () => run.best?.val, loss: () => lastLoss(run)?.loss }[by]?.();
  return Number.isFinite(value) ? value : Infinity;
}

function wallOf(run) {
  const ledger = ledgerOf(run.story);
  return ledger?.isWhole ? ledger.total : NaN;
}

// [key of the heading, number to sort by, text]. Nothing is shown of a column that no run has.
function outcomesOf(run) {
  const part = run.story.parts.at(-1);
  const { best } = run;
  const [last, bits] = [lastLoss(run), bitsPerByte(run, best)];
  const mfu = part?.mfu.corrected ?? part?.mfu.clean;
  const iter = (value) => (part?.last_iter === null ? NaN : value);
  return [
    ["best", best?.val, loss],
    ["at", iter(best?.iter), named],
    ["bits", bits, loss],
    ["loss", last?.loss, loss],
    ["iters", iter(last?.iter), named],
    ["tokens", part?.tok_s, speed],
    ["normal", part?.normal_ms, duration],
    ["wall", wallOf(run), (ms) => elapsed(ms / 1000)],
    ["mfu", mfu, (value) => percent(value, 2)],
    ["parameters", part?.parameters, large],
  ].map(([name, value, format]) => ({
    key: `page-outcome-${name}`, value: Number.isFinite(value) ? value : Infinity,
    text: Number.isFinite(value) ? format(value) : say("page-unknown"), isKnown: Number.isFinite(value),
  }));
}

// The names of the settings whose values differ. A setting that only one log states is not a
// difference: the other log may not print it.
function differences(runs) {
  const names = [...new Set(runs.flatMap((run) => Object.keys(run.story.config)))].sort();
  return names.filter((name) => name !== "out_dir"
    && new Set(runs.map((run) => run.story.config[name]).filter((value) => value !== undefined)).size > 1);
}

// The columns of the table: [{ heading, isSetting, cells: by run }].
function compareColumns(runs) {
  const outcomes = runs.map(outcomesOf);
  const columns = outcomes[0].map(({ key }, i) => ({
    heading: say(key), cells: outcomes.map((list) => list[i]),
  })).filter(({ cells }) => cells.some((cell) => cell.isKnown));
  const names = differences(runs);
  const settings = names.length > FEW_SETTINGS ? [] : names.map((name) => ({
    heading: name, isSetting: true, cells: runs.map((run) => {
      const text = settingOf(run, name);
      return { text, value: Number.isFinite(Number(text)) ? Number(text) : text };
    }),
  }));
  return [...columns, ...settings];
}

const settingOf = (run, name) => run.story.config[name] ?? say("page-unknown");

// Many settings that differ: a row for each, behind a line that says how many.
function settingsTable(ranked) {
  const names = differences(ranked);
  if (names.length <= FEW_SETTINGS) return null;
  const head = make("tr", {}, make("th", {}), ...ranked.map((run) =>
    make("th", { scope: "col" }, chip(ownColor(run)), run.name)));
  const rows = names.slice(0, MOST_SETTINGS).map((name) => make("tr", {},
    make("th", { scope: "row" }, name), ...ranked.map((run) => make("td", {}, settingOf(run, name)))));
  return make("details", { open: names.length <= OPEN_SETTINGS },
    make("summary", {}, say("page-differences", { count: names.length })),
    make("div", { className: "scroll" }, make("table", { className: "compare differences" },
      make("thead", {}, head), make("tbody", {}, ...rows))));
}

function compareSection(runs) {
  const told = runs.filter((run) => run.story);
  if (told.length < 2) return [];
  const by = rankedBy(told);
  const ranked = [...told].sort((a, b) => scoreOf(a, by) - scoreOf(b, by));
  const hasWinner = by !== null && Number.isFinite(scoreOf(ranked[0], by));
  return [
    ...(hasWinner || by === null
      ? [make("p", { className: "winner" }, ...(hasWinner ? winnerText(ranked, by) : [say("page-no-winner")]))] : []),
    make("div", { className: "scroll" }, compareTable(ranked, hasWinner)),
    ...[settingsTable(ranked)].filter(Boolean),
  ];
}

function winnerText(ranked, by) {
  const [first, second] = ranked;
  const value = scoreOf(first, by);
  const lead = scoreOf(second, by) - value;
  return [chip(ownColor(first)), make("b", {}, first.name), ` ${say(`page-winner-${by}`, { loss: loss(value) })}`,
    Number.isFinite(lead) ? ` ${say("page-lead", { name: second.name, loss: loss(lead) })}` : ""];
}

// The best run first. A click on a heading sorts by that column.
function compareTable(ranked, hasWinner) {
  const columns = compareColumns(ranked);
  const hasStates = ranked.some((run) => !["finished", "log"].includes(run.story.state.name));
  const rows = ranked.map((run, i) => make("tr", { className: hasWinner && i === 0 ? "best" : "" },
    make("th", { scope: "row" }, chip(ownColor(run)), run.name),
    make("td", { className: `verdict ${run.story.health.level}`, title: run.story.health.text[language] },
      make("span", { className: "light" }, say(`page-level-${run.story.health.level}`))),
    ...columns.map(({ cells, isSetting }) => make("td", { className: isSetting ? "setting" : "" }, cells[i].text)),
    hasStates ? make("td", { className: "state" }, stateText({ ...run.story.state, step: null, iter: null })) : null));
  const body = make("tbody", {}, ...rows);
  const sortBy = (column, sign) => {
    const { cells } = columns[column];
    const order = ranked.map((_, i) => i).sort((a, b) => sign * compareValues(cells[a].value, cells[b].value));
    body.append(...order.map((i) => rows[i]));
  };
  const fixed = (key, className) => make("th", { scope: "col", className }, say(key));
  const head = make("tr", {}, fixed("page-run", ""), fixed("page-verdict", "verdict"),
    ...columns.map(({ heading }, i) => sortHeading(heading, (sign) => sortBy(i, sign))),
    hasStates ? fixed("page-state", "state") : null);
  return make("table", { className: "compare" }, make("thead", {}, head), body);
}

// Numbers before texts, the smallest first.
function compareValues(a, b) {
  if (typeof a === typeof b) return typeof a === "number" ? (a === b ? 0 : a - b) : a.localeCompare(b);
  return typeof a === "number" ? -1 : 1;
}

// A heading that sorts its table: the smallest first, and after another click the largest. It calls
// `act` with 1 or -1.
function sortHeading(text, act) {
  const button = make("button", { type: "button", className: "sort", title: say("page-sort") }, text);
  const heading = make("th", { scope: "col" }, button);
  button.addEventListener("click", () => {
    const sign = heading.ariaSort === "ascending" ? -1 : 1;
    for (const other of heading.parentElement.children) other.ariaSort = null;
    heading.ariaSort = sign > 0 ? "ascending" : "descending";
    act(sign);
  });
  return heading;
}
