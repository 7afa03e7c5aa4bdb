// Curves on a canvas. Of the rows behind one column of pixels the first, lowest, highest and last
// are drawn: no spike is ever lost, however many rows there are, and zooming in shows them all.

const MARGIN = { left: 62, right: 12, top: 10, bottom: 24 };
const NEAR = 7; // pixels: what the pointer reaches

// What all charts look at together: the axis and the part of it that is shown.
class View {
  constructor() {
    this.axis = "iter";
    this.zoom = null;
    this.smoothing = 0.6;
    this.charts = [];
    this.runs = [];
    this.isLive = false;
    this.numShown = 0; // rows that the charts show, or would if they were looked at
  }

  full() {
    let [low, high] = [Infinity, -Infinity];
    for (const run of this.runs) {
      for (const segment of run.segments) {
        const evals = this.axis === "iter" ? segment.shownEvals : [];
        if (evals.length) { // one may come after the last update
          low = Math.min(low, evals[0][0]);
          high = Math.max(high, evals.at(-1)[0]);
        }
        if (!segment.count) continue;
        const x = segment.x(this.axis);
        low = Math.min(low, this.axis === "time" ? 0 : x[0]);
        high = Math.max(high, x[segment.count - 1]);
      }
    }
    if (!(low < high)) return Number.isFinite(low) ? [low - 0.5, low + 0.5] : [0, 1];
    return [low, this.isLive ? this.withRoom(low, high) : high];
  }

  // A run that goes on gets room on the right: what comes is added, and nothing drawn again.
  withRoom(low, high) {
    const last = this.runs[0].story?.state.max_iters;
    if (this.axis === "iter" && last && high > 0.7 * last && high < last) return last;
    const step = niceStep(high - low, 8);
    return low + Math.ceil((1.02 * (high - low)) / step) * step;
  }

  range() {
    return this.zoom ?? this.full();
  }

  // Show a part of the axis; nothing, or more than there is, is all of it.
  show(range) {
    const [low, high] = this.full();
    if (range === null) {
      this.zoom = null;
    } else {
      const least = Math.min(high - low, this.axis === "time" ? 1e-3 : 2);
      const width = Math.max(range[1] - range[0], least);
      const from = Math.max(low, Math.min(range[0], high - width));
      const to = Math.min(high, from + width);
      this.zoom = from <= low && to >= high ? null : [from, to];
    }
    this.changed();
  }

  // Zoom by a factor around a place, or move by a share of what is shown.
  scale(factor, around) {
    const [from, to] = this.range();
    const middle = around ?? (from + to) / 2;
    this.show([middle - (middle - from) * factor, middle + (to - middle) * factor]);
  }

  move(share) {
    const [from, to] = this.range();
    const by = (to - from) * share;
    this.show([from + by, to + by]);
  }

  changed() {
    for (const chart of this.charts) chart.ask();
    this.onChange?.();
  }

  // Rows have come.
  grown() {
    for (const chart of this.charts) chart.grow();
    this.onChange?.();
  }
}

// First, lowest, highest and last value in each column of pixels; NaN where there is none.
function extremes(x, y, count, from, to, width, isLog) {
  const found = new Float64Array(4 * width).fill(NaN);
  const scale = width / (to - from || 1);
  for (let row = lowerBound(x, count, from); row < count && x[row] <= to; row += 1) {
    const value = y[row];
    if (!(value > -Infinity && value < Infinity) || (isLog && value <= 0)) continue;
    const at = 4 * Math.min(width - 1, Math.floor((x[row] - from) * scale));
    if (found[at] !== found[at]) {
      found[at] = found[at + 1] = found[at + 2] = value;
    } else if (value < found[at + 1]) found[at + 1] = value;
    else if (value > found[at + 2]) found[at + 2] = value;
    found[at + 3] = value;
  }
  return found;
}

function niceStep(span, parts) {
  const rough = span / Math.max(parts, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const lead = rough / power;
  return power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
}

function niceSeconds(span, parts) {
  const rough = span / Math.max(parts, 1);
  if (rough < 30) return niceStep(span, parts);
  const steps = [60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
  return steps.find((step) => step >= rough) ?? 86400 * Math.ceil(rough / 86400);
}

function linearTicks(low, high, parts) {
  const step = niceStep(high - low, parts);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9; tick += step) {
    ticks.push(Math.abs(tick) < step * 1e-9 ? 0 : tick);
  }
  return ticks;
}

function logTicks(low, high, parts) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    for (const lead of [1, 2, 5]) {
      const tick = lead * 10 ** power;
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  if (ticks.length < 2) return linearTicks(low, high, parts);
  const skip = Math.ceil(ticks.length / (2 * parts));
  return ticks.filter((_, i) => i % skip === 0);
}

// The style sheet's colours as a canvas understands them, until the reader turns light to dark.
const colors = {
  known: new Map(),
  of(name) {
    if (!this.known.has(name)) {
      this.probe ??= document.body.appendChild(make("span", { hidden: true }));
      this.probe.style.color = `var(--${name})`;
      this.known.set(name, getComputedStyle(this.probe).color);
    }
    return this.known.get(name);
  },
};

class Chart {
  // spec: id, title, tick(value), lines(view), describe(view, x, reach), and perhaps isLog,
  // canBeLog, fromZero, marks(view, chart, pen), caption(view)
  constructor(view, spec) {
    this.view = view;
    this.spec = spec;
    this.isLog = spec.isLog ?? false;
    this.isDue = true;
    this.isSeen = false; // a canvas that was never drawn on costs the browser nothing
    this.at = null;
    this.range = [0, 1];
    this.canvas = make("canvas", { tabIndex: 0 });
    this.canvas.setAttribute("role", "img");
    this.cursor = make("div", { className: "cursor", hidden: true });
    this.selection = make("div", { className: "selection", hidden: true });
    this.tip = make("div", { className: "tip", hidden: true });
    this.tip.setAttribute("role", "status");
    this.stage = make("div", { className: "stage" },
      this.canvas, this.cursor, this.selection, this.tip);
    this.legend = make("div", { className: "legend" });
    this.heading = make("figcaption", {});
    this.caption = make("p", { className: "caption" });
    this.element = make("figure", { className: "chart", id: `chart-${spec.id}` },
      this.heading, this.legend, this.stage, this.caption);
    this.listen();
    this.label();
    view.charts.push(this);
  }

  label() {
    const title = say(this.spec.title);
    this.heading.replaceChildren(make("h3", {}, title));
    if (this.spec.canBeLog) {
      const box = make("input", { type: "checkbox", checked: this.isLog });
      box.addEventListener("change", () => { this.isLog = box.checked; this.ask(); });
      this.heading.append(make("label", { className: "switch" }, box, say("page-log-scale")));
    }
    this.canvas.setAttribute("aria-label", `${title}. ${say("page-keys")}`);
  }

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
    // Whoever comes here at once must not be told of a chart that is about to be drawn.
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

  // The size, kept: asking the browser for it with every point would cost more than drawing.
  measure() {
    this.width = this.stage.clientWidth;
    this.height = this.stage.clientHeight;
    this.plotWidth = Math.max(1, this.width - MARGIN.left - MARGIN.right);
    this.plotHeight = Math.max(1, this.height - MARGIN.top - MARGIN.bottom);
  }

  value(pixel) {
    const [from, to] = this.range;
    return from + ((pixel - MARGIN.left) / this.plotWidth) * (to - from);
  }

  pixel(value) {
    const [from, to] = this.range;
    return MARGIN.left + ((value - from) / (to - from)) * this.plotWidth;
  }

  // Say what is at a place of the axis, or no longer.
  point(at) {
    const [from, to] = this.range;
    if (at === null || at < from || at > to) at = null;
    this.at = at;
    const reach = ((to - from) / this.plotWidth) * NEAR;
    const found = at === null ? null : this.spec.describe(this.view, at, reach);
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

  // To be drawn again, with the next frame. What nobody sees waits until somebody does.
  ask() {
    this.isDue = true;
    if (this.isAsked) return;
    this.element.hidden = !this.spec.lines(this.view).some((line) => line.count);
    setText(this.caption, this.spec.caption?.(this.view) ?? "");
    if (!this.isSeen || this.element.hidden) return;
    this.isAsked = true;
    requestAnimationFrame(() => { this.isAsked = false; this.draw(); });
  }

  // Rows have come: draw just them, if they fit into what is there.
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

  // The row that a line goes on from: where it has gaps, the last that is a number.
  lastDrawn(line, row) {
    const isDrawn = (value) => Number.isFinite(value) && !(this.isLog && value <= 0);
    while (line.joins && row > 0 && !isDrawn(line.y[row])) row -= 1;
    return row;
  }

  // Is there more to see than a part of a pixel?
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

  // What a drawing depends on, beside the rows themselves.
  state(lines) {
    const notes = this.view.runs.flatMap((run) => run.segments.map((segment) =>
      [segment.evals.length, segment.saves.length, segment.count && segment.phases.length]));
    return JSON.stringify([this.view.range(), this.view.axis, this.view.smoothing, this.isLog,
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
    const dense = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.width * dense);
    this.canvas.height = Math.round(this.height * dense);
    const pen = this.canvas.getContext("2d");
    pen.scale(dense, dense);
    this.scaleY(lines);
    this.axes(pen);
    this.inside(pen, () => {
      for (const line of lines) this.drawLine(pen, line);
      this.spec.marks?.(this.view, this, pen, null);
    });
    this.drawn = { state: this.state(lines), ...this.counted(lines) };
    if (this.at !== null) this.point(this.at);
  }

  inside(pen, act) {
    pen.save();
    pen.beginPath();
    pen.rect(MARGIN.left, 0, this.plotWidth, MARGIN.top + this.plotHeight);
    pen.clip();
    act();
    pen.restore();
  }

  color(name) {
    return colors.of(name);
  }

  // The vertical scale: all that is shown, and a little room.
  scaleY(lines) {
    const [from, to] = this.range;
    const width = Math.ceil(this.plotWidth);
    let [low, high] = [Infinity, -Infinity];
    for (const line of lines) {
      line.found = extremes(line.x, line.y, line.count, from, to, width, this.isLog);
      for (let at = 0; at < line.found.length; at += 4) {
        if (line.found[at + 1] < low) low = line.found[at + 1];
        if (line.found[at + 2] > high) high = line.found[at + 2];
      }
    }
    if (!(low <= high)) [low, high] = this.isLog ? [1, 10] : [0, 1];
    if (this.spec.fromZero && !this.isLog) low = Math.min(0, low);
    if (low === high) {
      const room = Math.abs(low) * 0.1 || 1;
      [low, high] = this.isLog ? [low / 1.5, high * 1.5] : [low - room, high + room];
    }
    if (this.isLog) {
      const room = (high / low) ** 0.04;
      this.low = Math.log(low / room);
      this.high = Math.log(high * room);
    } else {
      const room = (high - low) * 0.05;
      this.low = this.spec.fromZero && low >= 0 ? low : low - room;
      this.high = high + room;
    }
  }

  y(value) {
    const place = ((this.isLog ? Math.log(value) : value) - this.low) / (this.high - this.low);
    return MARGIN.top + (1 - place) * this.plotHeight;
  }

  axes(pen) {
    const [from, to] = this.range;
    const { left, top } = MARGIN;
    const bottom = top + this.plotHeight;
    pen.font = "12px system-ui, sans-serif";
    pen.lineWidth = 1;
    pen.fillStyle = this.color("faint");
    pen.strokeStyle = this.color("grid");
    const parts = Math.max(2, Math.floor(this.plotHeight / 32));
    const [low, high] = this.isLog ? [Math.exp(this.low), Math.exp(this.high)] : [this.low, this.high];
    const ticks = this.isLog ? logTicks(low, high, parts) : linearTicks(low, high, parts);
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const tick of ticks) {
      const y = Math.round(this.y(tick)) + 0.5;
      pen.beginPath();
      pen.moveTo(left, y);
      pen.lineTo(left + this.plotWidth, y);
      pen.stroke();
      pen.fillText(this.spec.tick(tick), left - 6, y);
    }
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const across = Math.max(2, Math.floor(this.plotWidth / 110));
    const isTime = this.view.axis === "time";
    const step = isTime ? niceSeconds(to - from, across) : Math.max(1, niceStep(to - from, across));
    for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) {
      const text = isTime ? secondsTick(tick, step) : whole(tick);
      const half = pen.measureText(text).width / 2;
      const x = Math.min(Math.max(this.pixel(tick), left - 20 + half), left + this.plotWidth + 8 - half);
      pen.fillText(text, x, bottom + 6);
    }
    pen.strokeStyle = this.color("axis");
    pen.beginPath();
    pen.moveTo(left + 0.5, top);
    pen.lineTo(left + 0.5, bottom + 0.5);
    pen.lineTo(left + this.plotWidth, bottom + 0.5);
    pen.stroke();
  }

  drawLine(pen, line) {
    const [from, to] = this.range;
    const first = Math.max(0, lowerBound(line.x, line.count, from) - 1);
    const last = Math.min(line.count - 1, lowerBound(line.x, line.count, to));
    if (last - first < this.plotWidth) {
      this.drawRows(pen, line, first, last);
      return;
    }
    const points = [];
    for (let at = 0; at < line.found.length; at += 4) {
      if (line.found[at] !== line.found[at]) continue;
      for (let part = 0; part < 4; part += 1) points.push([MARGIN.left + at / 4 + 0.5, line.found[at + part]]);
    }
    this.stroke(pen, line, points);
  }

  // Each row of a line, from the first to the last.
  drawRows(pen, line, first, last = line.count - 1) {
    const points = [];
    for (let row = Math.max(0, first); row <= last; row += 1) points.push([this.pixel(line.x[row]), line.y[row]]);
    this.stroke(pen, line, points);
    if (line.dots || (!this.view.isLive && last - first < this.plotWidth / 12)) {
      pen.fillStyle = this.color(line.color);
      for (const [x, value] of points) if (Number.isFinite(value)) this.dot(pen, x, value, 2.5);
    }
    pen.globalAlpha = 1;
  }

  stroke(pen, line, points) {
    pen.strokeStyle = this.color(line.color);
    pen.globalAlpha = line.alpha ?? 1;
    pen.lineWidth = line.width ?? 1.5;
    pen.lineJoin = "round";
    pen.setLineDash(line.dash ?? []);
    pen.beginPath();
    let isDown = false;
    for (const [x, value] of points) {
      if (!Number.isFinite(value) || (this.isLog && value <= 0)) {
        isDown = isDown && Boolean(line.joins);
      } else {
        if (isDown) pen.lineTo(x, this.y(value));
        else pen.moveTo(x, this.y(value));
        isDown = true;
      }
    }
    pen.stroke();
    pen.setLineDash([]);
  }

  dot(pen, x, value, size) {
    pen.beginPath();
    pen.arc(x, this.y(value), size, 0, 2 * Math.PI);
    pen.fill();
  }
}

// Make an element. Text becomes text, never markup.
function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}
