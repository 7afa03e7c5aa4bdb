// Several processes that train one model: what each does in an update, over the run and at last.

const MOST_LANES = 16; // if there are more processes, the slowest are shown
const LANES = [["compute", "blue"], ["communication", "violet"], ["waiting", "orange"]];
const TIMES = {
  compute: "page-ranks-compute", communication: "page-ranks-communication", waiting: "page-ranks-waiting", eval: "page-ranks-eval",
};

const ranksOf = (story) => story.parts.findLast((part) => part.ranks)?.ranks ?? null;

function ranksSection(runs) {
  const known = runs.filter((run) => run.story && ranksOf(run.story));
  return known.flatMap((run) => {
    const ranks = ranksOf(run.story);
    const whole = lanes(ranks.run, ranks.straggler, runs.length > 1 ? run.name : say("page-ranks-run"));
    const newest = lanes(ranks.newest, ranks.straggler, say("page-ranks-newest", { number: named(ranks.newest.iter) }));
    const told = run.story.findings.find((found) => found.rule === "straggler");
    const count = ranks.run.compute.length;
    return [
      told && ranks.straggler !== null ? make("p", { className: `straggler ${told.level}` }, told.title[language]) : "",
      make("div", { className: "grid" }, whole, runs.length > 1 ? null : newest),
      make("div", { className: "caption" }, say("page-ranks-about", { imbalance: number(ranks.imbalance, 2) }),
        count > MOST_LANES ? ` ${say("page-ranks-some", { count, shown: MOST_LANES })}` : ""),
    ];
  });
}

// A lane for each process: a bar as long as the update, and its times.
function lanes({ compute, wait, communication, evaluation }, straggler, heading) {
  const slowest = [...compute.keys()].sort((a, b) => compute[b] - compute[a]).slice(0, MOST_LANES);
  const shown = slowest.sort((a, b) => a - b);
  const longest = Math.max(...compute.map((ms, rank) => ms + wait[rank]), 1e-9);
  const hasEvals = evaluation.some(Number.isFinite);
  const columns = ["compute", "waiting", ...(hasEvals ? ["eval"] : [])];
  const head = make("tr", {}, make("th", {}), make("th", { className: "lane" }),
    ...columns.map((name) => make("th", { scope: "col" }, say(TIMES[name]))));
  const rows = shown.map((rank) => {
    const times = { compute: compute[rank], communication, waiting: Math.max(0, wait[rank] - communication), eval: evaluation[rank] };
    return make("tr", { className: rank === straggler ? "slow" : "" },
      make("th", { scope: "row" }, say("page-rank", { rank: named(rank) })),
      make("td", { className: "lane" }, laneBar(times, longest)),
      ...columns.map((name) => make("td", {}, duration(times[name]))));
  });
  return make("div", {}, make("h3", {}, heading), laneLegend(communication),
    make("div", { className: "scroll" }, make("table", { className: "ranks" },
      make("thead", {}, head), make("tbody", {}, ...rows))));
}

// Communication is the same for all processes, so it needs no column.
function laneLegend(communication) {
  return make("div", { className: "legend" }, ...LANES.map(([name, color]) => make("span", {}, chip(color),
    say(TIMES[name]), name === "communication" ? ` ${duration(communication)}` : "")));
}

function laneBar(times, longest) {
  const bar = make("div", { className: "bar" });
  for (const [name, color] of LANES) {
    const piece = make("span", { title: labelled(say(TIMES[name]), duration(times[name])) });
    piece.style.width = `${(100 * times[name]) / longest}%`;
    piece.style.background = `var(--${color})`;
    bar.append(piece);
  }
  return bar;
}
