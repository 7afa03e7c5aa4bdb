// The list of all runs on a server.

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
    const head = make("tr", {}, ...["page-run", "page-state", "page-best-loss"].map((key) =>
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
