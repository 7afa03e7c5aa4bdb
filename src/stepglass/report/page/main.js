// Starts the page, from a file or from a server.

let follower = null;

async function openLive() {
  const [, kind, numbers] = location.pathname.match(/^\/(run|compare)\/([\d/]+)$/) ?? [];
  const ids = numbers?.split("/").map(Number);
  if (kind === "run") {
    follower = new Follower(ids);
    return;
  }
  const runs = await (await fetch("/runs.json")).json();
  if (ids) follower = new Follower(ids, new Map(runs.map(({ id, name }) => [id, name])));
  else if (runs.length === 1 && location.search !== "?list") follower = new Follower([runs[0].id]);
  else await listRuns();
}

setLanguage(firstLanguage());
languageChoice();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  colors.known.clear();
  view.changed();
});
if (document.body.dataset.mode === "live") openLive(); else openReport();
