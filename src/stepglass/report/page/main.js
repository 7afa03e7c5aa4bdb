// Starts the page, from a file or from a server.

let follower = null;

async function openLive() {
  const follow = (id) => { follower = new Follower(`/run/${id}`); };
  const found = location.pathname.match(/^\/run\/(\d+)$/);
  if (found) return follow(found[1]);
  const runs = await (await fetch("/runs.json")).json();
  if (runs.length === 1 && location.search !== "?list") return follow(runs[0].id);
  return listRuns();
}

setLanguage(firstLanguage());
languageChoice();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  colors.known.clear();
  view.changed();
});
// Before printing, draw all charts, including those that were never visible.
addEventListener("beforeprint", () => {
  colors.known.clear();
  for (const chart of view.charts) chart.draw();
});
if (document.body.dataset.mode === "live") openLive(); else openReport();
