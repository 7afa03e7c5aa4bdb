// A chart: a plot with a heading, a legend and a caption. It shows the values at the pointer or the
// keyboard position, and decides when to redraw.

const NEAR = 7; // pixels: how near the pointer must be

class Chart extends Plot {
  // A chart is described by an object:
  //   id                          its name; its title is the sentence page-chart-ID
  //   section                     the section of the page that contains it
  //   lines(view)                 [{ x, y, count, color, ... }]
  //   tick(value)                 the text of a tick of the vertical axis
  //   describe(view, x, reach, chart)   the values at a position: { x, lines }, or null
  // and optionally
  //   isTall, isLog, canBeLog, fromZero
  //   isRobust                    may cut off the highest values, and says so
  //   marks(view, chart, pen, done)     draws more; `done`: how many rows of each segment are drawn
  //   caption(view), legend(view)       a text; elements (by default, the names of several runs)
  //   follows(story)              the part of the story it shows; other changes do not redraw it
  //   Type                        a class to use instead of Chart
  constructor(view, spec) {
    super(view, spec);
    this.isDue = true;
    this.isSeen = false; // a canvas that was never drawn on costs nothing
    this.at = null;
    this.canvas.setAttribute("role", "img");
    this.cursor = make("div", { className: "cursor", hidden: true });
    this.selection = make("div", { className: "selection", hidden: true });
    this.tip = make("div", { className: "tip", hidden: true });
    this.tip.setAttribute("role", "status");
    this.stage.append(this.cursor, this.selection, this.tip);
    this.legend = make("div", { className: "legend" });
    this.heading = make("figcaption", {});
    this.caption = make("p", { className: "caption" });
    this.element = make("figure", { className: "chart", id: `chart-${spec.id}` },
      this.heading, this.legend, this.stage, this.caption);
    if (spec.isTall) this.element.classList.add("tall");
    this.listen();
    this.label();
    view.charts.push(this);
  }

  // Writes its texts in the language of the page.
  label() {
    const title = say(`page-chart-${this.spec.id}`);
    this.heading.replaceChildren(make("h3", {}, title));
    const choices = make("span", { className: "switches" });
    if (this.spec.isRobust) choices.append(this.choice("isWhole", "page-whole-range"));
    if (this.spec.canBeLog) choices.append(this.choice("isLog", "page-log-scale"));
    this.heading.append(choices);
    this.canvas.setAttribute("aria-label", `${title}. ${say("page-keys")}`);
  }

  choice(name, key) {
    const box = make("input", { type: "checkbox", checked: this[name] });
    box.addEventListener("change", () => { this[name] = box.checked; this.ask(); });
    return make("label", { className: "switch" }, box, say(key));
  }

  // Says what is drawn, and what is cut off.
  captioned() {
    const cut = this.cut === null ? "" : say("page-cut", { highest: this.spec.tick(this.cut) });
    setText(this.caption, [this.spec.caption?.(this.view), cut].filter(Boolean).join(" "));
  }

  // -- pointing --------------------------------------------------------------------------------------

  listen() {
    new ResizeObserver(() => { this.measure(); this.ask(); }).observe(this.stage);
    new IntersectionObserver((entries) => {
      this.isSeen = entries[entries.length - 1].isIntersecting;
      if (this.isSeen && this.isDue) this.ask();
    }).observe(this.stage);
    let start = null;
    const x = (event) => event.clientX - this.canvas.getBoundingClientRect().left;
    this.canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      start = x(event);
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (start !== null && Math.abs(x(event) - start) > 3) {
        this.place(this.selection, Math.min(start, x(event)), Math.abs(x(event) - start));
        this.point(null);
      } else {
        this.point(this.value(x(event)));
      }
    });
    const end = (event) => {
      const [from, to] = [start, x(event)];
      start = null;
      this.selection.hidden = true;
      if (from === null || event.type === "pointercancel" || Math.abs(to - from) <= 3) return;
      this.view.show([this.value(Math.min(from, to)), this.value(Math.max(from, to))]);
    };
    // Redraw a chart that is out of date before the pointer shows its values.
    const beReady = () => { if (this.isDue) this.draw(); };
    this.canvas.addEventListener("pointerenter", beReady);
    this.canvas.addEventListener("focus", beReady);
    this.canvas.addEventListener("pointerup", end);
    this.canvas.addEventListener("pointercancel", end);
    this.canvas.addEventListener("pointerleave", () => { if (start === null) this.point(null); });
    this.canvas.addEventListener("dblclick", () => this.view.show(null));
    this.canvas.addEventListener("blur", () => this.point(null));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const [from, to] = this.range;
    const step = (to - from) / (event.shiftKey ? 10 : 100);
    const at = this.at ?? (from + to) / 2;
    const keys = {
      ArrowLeft: () => this.point(Math.max(from, at - step)),
      ArrowRight: () => this.point(Math.min(to, at + step)),
      Home: () => this.point(from),
      End: () => this.point(to),
      "+": () => this.view.scale(0.5, at),
      "=": () => this.view.scale(0.5, at),
      "-": () => this.view.scale(2, at),
      0: () => this.view.show(null),
      Escape: () => { this.point(null); this.view.show(null); },
    };
    if (!(event.key in keys) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  }

  place(element, left, width) {
    element.hidden = false;
    element.style.left = `${left}px`;
    element.style.width = `${width}px`;
    element.style.top = `${MARGIN.top}px`;
    element.style.height = `${this.plotHeight}px`;
  }

  // Shows the values at a position of the axis, or hides them for null.
  point(at) {
    const [from, to] = this.range;
    if (at === null || at < from || at > to) at = null;
    this.at = at;
    const reach = ((to - from) / this.plotWidth) * NEAR;
    const found = at === null ? null : this.spec.describe(this.view, at, reach, this);
    this.cursor.hidden = this.tip.hidden = found === null;
    if (found === null) return;
    const left = this.pixel(found.x);
    this.place(this.cursor, left, 0);
    this.tip.replaceChildren(...found.lines.map((line, i) =>
      make("div", { className: i ? "" : "first" }, ...[line].flat())));
    this.tip.style.left = `${Math.min(left + 12, this.width - this.tip.offsetWidth - 4)}px`;
    if (left + 12 + this.tip.offsetWidth > this.width) {
      this.tip.style.left = `${Math.max(0, left - 12 - this.tip.offsetWidth)}px`;
    }
    this.tip.style.top = `${MARGIN.top + 4}px`;
  }

  // -- when to draw ----------------------------------------------------------------------------------

  // Requests a redraw in the next frame, or when the chart becomes visible.
  ask() {
    this.isDue = true;
    if (this.isAsked) return;
    this.element.hidden = !this.spec.lines(this.view).some((line) => line.count);
    this.captioned();
    if (!this.isSeen) this.view.drawAhead();
    if (!this.isSeen || this.element.hidden) return;
    this.isAsked = true;
    requestAnimationFrame(() => { this.isAsked = false; this.draw(); });
  }

  // Draws only the new rows, if they fit into the current axes.
  grow() {
    if (!this.isSeen && !this.element.hidden) {
      this.isDue = true;
      return undefined;
    }
    if (this.isDue || this.element.hidden) return this.ask();
    const lines = this.linesNow();
    if (this.state(lines) !== this.drawn.state) return this.ask();
    if (!this.isVisible(lines)) return undefined;
    const [, to] = this.range;
    for (const [i, line] of lines.entries()) {
      for (let row = this.drawn.counts[i]; row < line.count; row += 1) {
        const value = line.y[row];
        if (line.x[row] > to || !Number.isFinite(value) || (this.isLog && value <= 0)) continue;
        const place = this.isLog ? Math.log(value) : value;
        if (!(place >= this.low && place <= this.high)) return this.ask();
      }
    }
    const pen = this.canvas.getContext("2d");
    this.inside(pen, () => {
      lines.forEach((line, i) => this.drawRows(pen, line, this.lastDrawn(line, this.drawn.counts[i] - 1)));
      this.spec.marks?.(this.view, this, pen, this.drawn.rows);
    });
    this.drawn = { ...this.drawn, ...this.counted(lines) };
    return undefined;
  }

  // The row from which a line is continued: the last one with a number (lines have gaps).
  lastDrawn(line, row) {
    const isDrawn = (value) => Number.isFinite(value) && !(this.isLog && value <= 0);
    while (line.joins && row > 0 && !isDrawn(line.y[row])) row -= 1;
    return row;
  }

  // Are the new rows at least one pixel wide?
  isVisible(lines) {
    const [from, to] = this.range;
    const least = (to - from) / this.plotWidth;
    return lines.some((line, i) => {
      const [before, now] = [this.drawn.counts[i], line.count];
      return now > before && line.x[now - 1] - line.x[before - 1] >= least;
    });
  }

  linesNow() {
    return this.spec.lines(this.view).filter((line) => line.count);
  }

  // Everything that a drawing depends on, except the rows.
  state(lines) {
    const notes = this.view.runs.flatMap((run) => run.segments.map((segment) =>
      [segment.evals.length, segment.saves.length, segment.count && segment.phases.length]));
    return JSON.stringify([this.view.range(), this.view.axis, this.view.smoothing, this.isLog, this.isWhole,
      lines.length, this.width, this.height, devicePixelRatio, notes]);
  }

  counted(lines) {
    const rows = new Map();
    for (const run of this.view.runs) for (const segment of run.segments) rows.set(segment, segment.shown);
    return { counts: lines.map((line) => line.count), rows };
  }

  draw() {
    this.isDue = false;
    const lines = this.linesNow();
    this.measure();
    this.range = this.view.range();
    if (!this.width || !this.height || !lines.length) return;
    const pen = this.begin(lines);
    this.inside(pen, () => {
      for (const line of lines) this.drawLine(pen, line);
      this.spec.marks?.(this.view, this, pen, null);
    });
    this.drawn = { state: this.state(lines), ...this.counted(lines) };
    this.captioned();
    if (this.at !== null) this.point(this.at);
  }
}
