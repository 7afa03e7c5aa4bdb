// The runs in a folder: a table that follows them, can be sorted, and in which runs are ticked to be
// compared.

const LIST_MS = 3000;
const MOST_COMPARED = 8;
// [key of the heading, value to sort by, text]
const LIST_COLUMNS = [
  ["page-state", (run) => run.state, (run) => stateText({ name: run.state, step: null })],
  ["page-figure-best", (run) => run.best_val_loss, (run) => loss(run.best_val_loss)],
  ["page-figure-loss", (run) => run.loss, (run) => loss(run.loss)],
  ["page-iterations-done", (run) => run.step, (run) => progressText(run) ?? say("page-unknown")],
  ["page-figure-tokens", (run) => run.tok_s, (run) => (run.tok_s === null ? say("page-unknown") : speed(run.tok_s))],
  ["page-changed", (run) => (run.changed === null ? null : -run.changed), (run) => ago(run.changed)],
];

class RunList {
  constructor() {
    this.runs = [];
    this.ticked = new Set(); // numbers of runs
    this.rows = new Map(); // by number of the run
    this.valueOf = (run) => run.name;
    this.sign = 1;
    this.numFailures = 0;
  }

  async look() {
    try {
      this.runs = await (await fetch("/runs.json")).json();
      this.numFailures = 0;
      connection("page-live");
    } catch {
      this.numFailures += 1;
      if (this.numFailures > 1) connection("page-lost"); // once may be a hiccup
      return;
    }
    this.show();
    document.body.dataset.ready = "yes";
  }

  // Makes the table in the language of the page.
  build() {
    this.body = make("tbody", {});
    this.rows.clear();
    const sort = (valueOf) => (sign) => { Object.assign(this, { valueOf, sign }); this.show(); };
    const head = make("tr", {}, make("td", {}), sortHeading(say("page-run"), sort((run) => run.name)),
      ...LIST_COLUMNS.map(([key, valueOf]) => sortHeading(say(key), sort(valueOf))));
    this.compare = make("a", { className: "button" });
    this.empty = make("p", {}, say("page-no-runs"));
    this.table = make("div", {},
      make("p", { className: "compare-ticked" }, this.compare, make("span", { className: "caption" }, say("page-tick"))),
      make("div", { className: "scroll" }, make("table", { className: "compare" }, make("thead", {}, head), this.body)));
    document.querySelector("main").replaceChildren(make("section", { id: "runs" },
      make("h2", {}, say("page-runs")), this.empty, this.table));
    this.show();
  }

  show() {
    this.empty.hidden = this.runs.length > 0;
    this.table.hidden = !this.runs.length;
    const known = new Set(this.runs.map((run) => run.id));
    for (const [id, row] of this.rows) if (!known.has(id)) { row.remove(); this.rows.delete(id); this.ticked.delete(id); }
    const isKnown = (run) => this.valueOf(run) !== null;
    const sorted = [...this.runs].sort((a, b) => isKnown(b) - isKnown(a)
      || (isKnown(a) ? this.sign * compareValues(this.valueOf(a), this.valueOf(b)) : 0)
      || compareValues(a.name, b.name));
    sorted.forEach((run, i) => {
      const row = this.row(run);
      // A row that is moved loses the focus, so it is moved only if it must be.
      if (this.body.children[i] !== row) this.body.insertBefore(row, this.body.children[i] ?? null);
    });
    this.offer();
  }

  // The row of a run. It is made once and then updated.
  row(run) {
    if (!this.rows.has(run.id)) this.rows.set(run.id, this.newRow(run));
    const row = this.rows.get(run.id);
    row.className = run.state;
    LIST_COLUMNS.forEach(([, , text], i) => setText(row.children[i + 2], text(run)));
    return row;
  }

  newRow({ id, name }) {
    const box = make("input", { type: "checkbox", checked: this.ticked.has(id) });
    box.setAttribute("aria-label", name);
    box.addEventListener("change", () => {
      if (box.checked) this.ticked.add(id); else this.ticked.delete(id);
      this.offer();
    });
    return make("tr", {}, make("td", {}, box),
      make("th", { scope: "row" }, make("a", { href: `/run/${id}` }, name)),
      ...LIST_COLUMNS.map(() => make("td", {})));
  }

  // The link to the comparison of the ticked runs.
  offer() {
    const count = this.ticked.size;
    const isPossible = count >= 2 && count <= MOST_COMPARED;
    this.compare.hidden = count < 2;
    setText(this.compare, say("page-compare-ticked", { count }));
    if (isPossible) this.compare.href = `/compare/${[...this.ticked].sort((a, b) => a - b).join("/")}`;
    else this.compare.removeAttribute("href");
  }
}

// How long ago something happened, from seconds since 1970.
function ago(seconds) {
  if (!Number.isFinite(seconds)) return say("page-unknown");
  const past = Math.max(0, Date.now() / 1000 - seconds);
  const [size, unit] = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]].find(([least]) => past >= least) ?? [1, "second"];
  const format = new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" });
  return format.format(-Math.floor(past / size), unit);
}

let runList = null;

async function listRuns() {
  runList = new RunList();
  runList.build();
  await runList.look();
  setInterval(() => { if (!document.hidden) runList.look(); }, LIST_MS);
}
