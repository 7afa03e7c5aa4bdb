// A page from a server. It follows a run with server-sent events.

const REDRAW_MS = 500; // not more often, because training may use the same machine
const MOST_ROWS = 200_000; // a page with more rows requests the overview again

class Follower {
  constructor(address) {
    this.address = address;
    this.run = new Run(0);
    this.source = null;
    this.seen = ""; // the id of the last processed event
    this.working = Promise.resolve();
    this.isNews = false;
    this.isReset = true;
    this.timer = null;
    this.drawnAt = 0;
    this.phases = "";
    view.runs = [this.run];
    build();
    fill();
    this.refiner = new Refiner(view, `${address}/rows`, () => {
      view.numShown = this.run.numRows;
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

  connect() {
    this.source?.close();
    if (document.hidden) return; // it connects when it becomes visible
    const after = this.seen ? `?after=${encodeURIComponent(this.seen)}` : "";
    const source = new EventSource(`${this.address}/events${after}`);
    this.source = source;
    source.addEventListener("open", () => connection("page-live"));
    source.addEventListener("error", () => {
      connection("page-lost");
      if (this.source.readyState === EventSource.CLOSED) setTimeout(() => this.connect(), 1000);
    });
    this.on("reset", () => this.reset());
    this.on("rows", (message) => this.run.rows(message));
    this.on("story", (story) => { this.run.tell(story); this.isNews = true; });
  }

  // Processes events one after the other, because decoding a column is asynchronous.
  on(name, act) {
    this.source.addEventListener(name, (event) => {
      this.working = this.working.then(() => act(JSON.parse(event.data)))
        .then(() => { this.seen = event.lastEventId; this.soon(); })
        .catch((error) => console.error(error)); // continue with the next event
    });
  }

  reset() {
    this.run = new Run(0);
    view.runs = [this.run];
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
    view.isLive = this.run.story?.state.name === "running";
    if (this.isNews) news();
    this.legendsIfNew();
    document.getElementById("axis").disabled = !hasTimes();
    if (this.isReset || wasLive !== view.isLive) view.changed();
    else view.grown();
    if (this.isReset) document.body.dataset.ready = "yes";
    this.isNews = this.isReset = false;
    view.numShown = this.run.numRows;
    if (this.run.numRows > MOST_ROWS) this.again();
  }

  // Requests the overview again.
  again() {
    this.seen = "";
    this.connect();
  }

  legendsIfNew() {
    const now = segmentsOf(view).map((segment) => segment.phases.join()).join(";");
    if (now !== this.phases) { this.phases = now; legends(); }
  }
}

function connection(key) {
  const element = document.getElementById("connection");
  element.dataset.key = key;
  element.className = key;
  element.textContent = say(key);
}
