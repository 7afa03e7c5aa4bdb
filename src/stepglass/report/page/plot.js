// A canvas with two axes and lines. For each column of pixels, the first, lowest, highest and last
// row are drawn. So no spike is lost, however many rows there are, and zooming in shows all rows.
// The class Chart decides when to draw and handles the pointer.

const MARGIN = { left: 62, right: 12, top: 10, bottom: 24 };

class Plot {
  constructor(view, spec) {
    this.view = view;
    this.spec = spec;
    this.isLog = spec.isLog ?? false;
    this.isWhole = !spec.isRobust; // may the highest values be cut off?
    this.cut = null; // the highest value, if it is
    this.range = [0, 1];
    this.canvas = make("canvas", { tabIndex: 0 });
    this.stage = make("div", { className: "stage" }, this.canvas);
  }

  // Stores the size, because asking the browser for it at every point is slower than drawing.
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

  y(value) {
    const place = ((this.isLog ? Math.log(value) : value) - this.low) / (this.high - this.low);
    return MARGIN.top + (1 - place) * this.plotHeight;
  }

  // Clears the canvas, sets its size, and draws axes that fit the lines.
  begin(lines) {
    const isPaper = document.documentElement.classList.contains("printing");
    const dense = Math.max(isPaper ? 2 : 1, window.devicePixelRatio || 1);
    this.canvas.width = Math.round(this.width * dense);
    this.canvas.height = Math.round(this.height * dense);
    const pen = this.canvas.getContext("2d");
    pen.scale(dense, dense);
    this.scaleY(lines);
    this.axes(pen);
    return pen;
  }

  // Draws with clipping to the area inside the axes.
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

  // The vertical scale: the range of the visible values, with a small margin.
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
    const highest = this.isWhole ? high : usualHigh(lines, this.view, low, high);
    this.cut = highest < high ? high : null;
    high = highest;
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
    const axis = AXES[this.view.axis];
    const step = axis.step(to - from, across);
    for (let tick = Math.ceil(from / step) * step; tick <= to; tick += step) {
      const text = axis.tick(tick, step);
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
    const points = first === 0 ? this.pointBefore(line) : [];
    for (let at = 0; at < line.found.length; at += 4) {
      if (line.found[at] !== line.found[at]) continue;
      for (let part = 0; part < 4; part += 1) points.push([MARGIN.left + at / 4 + 0.5, line.found[at + part]]);
    }
    this.stroke(pen, line, points);
  }

  // Where the line of a resumed run goes on from.
  pointBefore({ before }) {
    return before ? [[this.pixel(before.x), before.y]] : [];
  }

  // Draws every row of a line, from `first` to `last`.
  drawRows(pen, line, first, last = line.count - 1) {
    const points = first <= 0 ? this.pointBefore(line) : [];
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
