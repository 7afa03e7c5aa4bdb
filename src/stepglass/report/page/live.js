// A page from a server. It follows one run, or several that are compared, with server-sent events.

const REDRAW_MS = 500; // not more often, because training may use the same machine
const MOST_ROWS = 200_000; // a page with more rows requests the overview again
const AHEAD_MS = 30_000; // charts that nobody looks at are redrawn this often
const GRACE_MS = 2500; // a connection that is back by then was not lost
const ENDED_RETRY_MS = 10_000; // after the end of a run, which may be resumed

class Follower {
  // `ids` are the runs' numbers. `names` are their names in the list of runs, by number.
  constructor(ids, names = new Map()) {
    this.ids = ids;
    this.names = names;
    this.address = ids.length > 1 ? `/compare/${ids.join("/")}` : `/run/${ids[0]}`;
    this.source = null;
    this.seen = ""; // the id of the last processed event
    this.working = Promise.resolve();
    this.isNews = false;
    this.isReset = true;
    this.timer = null;
    this.lostTimer = null;
    this.drawnAt = this.aheadAt = 0;
    this.phases = "";
    view.runs = ids.map((_, i) => this.newRun(i));
    build();
    fill();
    this.refiner = new Refiner(view, ids.map((id) => `/run/${id}/rows`), () => {
      view.numShown = this.numRows;
      view.changed();
    });
    view.onChange = () => { showRange(); this.refiner.soon(); };
    // Browsers allow few connections per server, so a hidden page closes its connection.
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) this.source?.close();
      else { this.connect(); this.soon(); }
    });
    this.connect();
  }

  newRun(i) {
    const run = new Run(i);
    run.isCompared = this.ids.length > 1;
    run.listedAs = this.names.get(this.ids[i]) ?? null;
    return run;
  }

  get numRows() {
    return view.runs.reduce((sum, run) => sum + run.numRows, 0);
  }

  connect() {
    this.source?.close();
    if (document.hidden) return; // it connects when it becomes visible
    const after = this.seen ? `?after=${encodeURIComponent(this.seen)}` : "";
    const source = new EventSource(`${this.address}/events${after}`);
    this.source = source;
    source.addEventListener("open", () => this.found());
    source.addEventListener("error", () => this.lost(source));
    for (const i of this.ids.keys()) {
      this.on("reset", i, () => this.reset(i));
      this.on("rows", i, (message) => view.runs[i].rows(message));
      this.on("story", i, (story) => { view.runs[i].tell(story); this.isNews = true; });
    }
  }

  found() {
    clearTimeout(this.lostTimer);
    this.lostTimer = null;
    connection("page-live");
  }

  // A short interruption is not worth a word, and the end of a run is not a failure: the page of
  // `train --watch` ends with it.
  lost(source) {
    if (this.source !== source) return;
    if (hasEnded()) {
      connection("page-ended");
      source.close();
      setTimeout(() => { if (this.source === source) this.connect(); }, ENDED_RETRY_MS);
      return;
    }
    this.lostTimer ??= setTimeout(() => connection(hasEnded() ? "page-ended" : "page-lost"), GRACE_MS);
    if (source.readyState === EventSource.CLOSED) setTimeout(() => this.connect(), 1000);
  }

  // Processes events one after the other, because decoding a column is asynchronous.
  on(kind, i, act) {
    const name = this.ids.length > 1 ? `${kind}-${i}` : kind;
    this.source.addEventListener(name, (event) => {
      this.working = this.working.then(() => act(JSON.parse(event.data)))
        .then(() => { this.seen = event.lastEventId; this.soon(); })
        .catch((error) => console.error(error)); // continue with the next event
    });
  }

  reset(i) {
    view.runs[i] = this.newRun(i);
    this.isNews = this.isReset = true;
    this.refiner.forget();
  }

  soon() {
    const wait = this.drawnAt + REDRAW_MS - performance.now();
    if (wait <= 0) this.redraw();
    else this.timer ??= setTimeout(() => this.redraw(), wait);
  }

  redraw() {
    clearTimeout(this.timer);
    this.timer = null;
    if (document.hidden) return;
    this.drawnAt = performance.now();
    const wasLive = view.isLive;
    view.isLive = view.runs.some((run) => run.story?.state.name === "running");
    if (this.isNews) news(); else headline();
    this.legendsIfNew();
    if (this.isReset || wasLive !== view.isLive) view.changed();
    else view.grown();
    if (this.isReset) document.body.dataset.ready = "yes";
    this.isNews = this.isReset = false;
    view.isComplete = true;
    view.numShown = this.numRows;
    if (this.drawnAt - this.aheadAt > AHEAD_MS || !view.isLive) {
      this.aheadAt = this.drawnAt;
      view.drawAhead();
    }
    if (this.numRows > MOST_ROWS * view.runs.length) this.again();
  }

  // Requests the overview again.
  again() {
    this.seen = "";
    this.connect();
  }

  legendsIfNew() {
    const now = JSON.stringify([view.runs.map((run) => run.name), segmentsOf(view).map((segment) => segment.phases)]);
    if (now !== this.phases) { this.phases = now; legends(); }
  }
}

// Has every run that the page shows said how it ended?
function hasEnded() {
  return view.runs.every((run) => run.story && !["running", "waiting"].includes(run.story.state.name));
}

function connection(key) {
  const element = document.getElementById("connection");
  element.dataset.key = key;
  element.className = key;
  element.textContent = say(key);
}
