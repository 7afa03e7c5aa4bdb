// Which curves there are, and what is said when one is pointed at.

const STEP_PHASES = new Set(["phase:data", "phase:forward_backward", "phase:optimizer", "phase:step"]);
const SLOW = 1.5; // times an ordinary iteration
const SHARES_MS = 30_000;
const PHASE_ORDER = [
  "forward_backward", "step", "optimizer", "data", "eval", "eval+checkpoint", "checkpoint",
  "warmup", "warmup+eval", "stall", "log", "gc", "other", "unattributed",
];

function phaseColor(name) {
  return PHASE_ORDER.includes(name) ? `phase-${name.replace("+", "-")}` : "phase-other";
}

function phaseName(name) {
  const key = `phase-${name.replace("+", "-")}`;
  return key in WORDS[language] ? say(key) : name;
}

function byOrder(names) {
  const place = (name) => (PHASE_ORDER.indexOf(name) + 99) % 99;
  return [...names].sort((a, b) => place(a) - place(b));
}

function runColor(view, run, alone) {
  return view.runs.length > 1 ? `run-${run.number % 8}` : alone;
}

function* segments(view) {
  for (const run of view.runs) {
    for (const segment of run.segments) if (segment.count || segment.evals.length) yield segment;
  }
}

// A run that was begun anew in the same log stands back behind the last one.
function strength(segment) {
  const after = segment.run.segments.slice(segment.number + 1);
  return after.some((next) => next.count && !next.resumes) ? 0.35 : 1;
}

function nearestRow(segment, axis, at) {
  const x = segment.x(axis);
  const row = lowerBound(x, segment.shown, at);
  if (row === 0) return 0;
  if (row >= segment.shown) return segment.shown - 1;
  return at - x[row - 1] < x[row] - at ? row - 1 : row;
}

// The row nearest to a place in each run.
function* nearest(view, at, reach) {
  for (const run of view.runs) {
    let best = null;
    for (const segment of run.segments) {
      if (!segment.shown) continue;
      const row = nearestRow(segment, view.axis, at);
      const distance = Math.abs(segment.x(view.axis)[row] - at);
      if (!best || distance <= best.distance) best = { segment, row, distance };
    }
    const [from, to] = view.range();
    if (best && best.distance <= Math.max(reach, (to - from) / 20)) yield best;
  }
}

function whereLine(segment, row) {
  const where = say("page-iteration", { number: whole(segment.column("iter")[row]) });
  const prefix = segment.run.isCompared ? `${segment.run.name} · ` : "";
  return `${prefix}${where}${segment.has("time_ms") ? ` · ${seconds(segment.elapsed.data[row])}` : ""}`;
}

function simple(view, id, column, format, tick, more = {}) {
  const values = typeof column === "string" ? (segment) => segment.column(column) : column;
  return {
    id,
    title: `page-chart-${id}`,
    tick,
    lines: () => [...segments(view)].flatMap((segment) => {
      const y = values(segment);
      return y ? [{
        x: segment.x(view.axis), y, count: segment.shown, color: runColor(view, segment.run, id),
        alpha: strength(segment), width: 1.25, joins: true,
      }] : [];
    }),
    describe: (_, at, reach) => {
      const found = [...nearest(view, at, reach)].filter(({ segment }) => values(segment));
      if (!found.length) return null;
      const lines = found.flatMap(({ segment, row }) =>
        [whereLine(segment, row), format(values(segment)[row])]);
      return { x: found[0].segment.x(view.axis)[found[0].row], lines };
    },
    ...more,
  };
}

// -- loss -----------------------------------------------------------------------------------------

function evalLine(view, segment) {
  const evals = segment.shownEvals.filter(([, val]) => val !== null);
  const x = Float64Array.from(evals, ([iter]) => segment.xAt(iter, view.axis));
  return { evals, x, y: Float64Array.from(evals, ([, val]) => val), count: evals.length };
}

function lossChart(view) {
  return {
    id: "loss",
    title: "page-chart-loss",
    tick: tidy,
    canBeLog: true,
    lines: () => [...segments(view)].flatMap((segment) => {
      const alpha = strength(segment);
      const x = segment.x(view.axis);
      const lines = [];
      if (segment.has("loss")) {
        const color = runColor(view, segment.run, "train");
        const isSmooth = view.smoothing > 0;
        lines.push({ x, y: segment.column("loss"), count: segment.shown, color,
          alpha: alpha * (isSmooth ? 0.3 : 1), width: 1, joins: true });
        if (isSmooth) {
          lines.push({ x, y: segment.smoothed(view.smoothing), count: segment.shown, color, alpha,
            width: 2 });
        }
      }
      const color = runColor(view, segment.run, "val");
      const line = evalLine(view, segment);
      lines.push({ ...line, color, alpha, width: 2, dots: line.count < 200,
        dash: view.runs.length > 1 ? [5, 3] : [] });
      return lines;
    }),
    marks: (_, chart, pen, done) => {
      if (done) return; // rows alone change none of them
      for (const segment of segments(view)) lossBand(view, segment, chart, pen);
      for (const segment of segments(view)) bestMark(view, segment, chart, pen);
    },
    caption: () => (view.runs.some((run) => run.segments.some((s) => s.evals.some((e) => e[2])))
      ? say("page-band") : ""),
    describe: (_, at, reach) => {
      const found = [...nearest(view, at, reach)];
      if (!found.length) return null;
      const lines = [];
      for (const { segment, row } of found) {
        lines.push(whereLine(segment, row));
        const value = segment.column("loss")?.[row];
        if (Number.isFinite(value)) {
          const raw = say("page-train-loss", { loss: loss(value) });
          lines.push(view.smoothing
            ? `${raw} (${say("page-smoothed", { loss: loss(segment.smoothed(view.smoothing)[row]) })})`
            : raw);
        }
        const near = evalLine(view, segment);
        const closest = nearestEval(near, at, Math.max(reach, 0));
        if (closest) {
          const [iter, val, se] = closest;
          const text = say("page-val-loss", { loss: loss(val), number: whole(iter) });
          lines.push(se ? `${text} ± ${loss(se)}` : text);
        }
      }
      return { x: found[0].segment.x(view.axis)[found[0].row], lines };
    },
  };
}

function nearestEval(line, at, reach) {
  let best = null;
  line.evals.forEach((evaluation, i) => {
    const distance = Math.abs(line.x[i] - at);
    if (distance <= reach && (!best || distance < best.distance)) best = { evaluation, distance };
  });
  return best?.evaluation ?? null;
}

function lossBand(view, segment, chart, pen) {
  const { evals, x, y } = evalLine(view, segment);
  const known = evals.map((_, i) => i).filter((i) => evals[i][2]);
  if (known.length < 2) return;
  pen.beginPath();
  for (const i of known) pen.lineTo(chart.pixel(x[i]), chart.y(y[i] + evals[i][2]));
  for (const i of known.reverse()) {
    pen.lineTo(chart.pixel(x[i]), chart.y(Math.max(y[i] - evals[i][2], 1e-9)));
  }
  pen.fillStyle = chart.color(runColor(view, segment.run, "val"));
  pen.globalAlpha = 0.18;
  pen.fill();
  pen.globalAlpha = 1;
}

function bestMark(view, segment, chart, pen) {
  const best = segment.run.part(segment)?.best;
  if (!best || strength(segment) < 1 || !segment.shownEvals.some(([iter]) => iter === best.iter)) return;
  const x = chart.pixel(segment.xAt(best.iter, view.axis));
  const y = chart.y(best.val);
  pen.strokeStyle = pen.fillStyle = chart.color(runColor(view, segment.run, "val"));
  pen.lineWidth = 2;
  pen.beginPath();
  pen.arc(x, y, 6, 0, 2 * Math.PI);
  pen.stroke();
  const text = say("page-best", { loss: loss(best.val), number: whole(best.iter) });
  pen.font = "12px system-ui, sans-serif";
  const width = pen.measureText(text).width;
  const left = x > MARGIN.left + chart.plotWidth / 2 ? x - 9 - width : x + 9;
  pen.fillStyle = chart.color("card");
  pen.globalAlpha = 0.85;
  pen.fillRect(left - 3, y - 26, width + 6, 17);
  pen.globalAlpha = 1;
  pen.textAlign = "left";
  pen.textBaseline = "bottom";
  pen.fillStyle = chart.color("text");
  pen.fillText(text, left, y - 10);
}

// -- time -----------------------------------------------------------------------------------------

function normalMs(segment) {
  return segment.run.part(segment)?.normal_ms ?? null;
}

function stalls(segment) {
  return segment.derive("stalls", () => new Set(segment.run.part(segment)?.stalls ?? []));
}

// Why an iteration was slow: [phase, ms], the longest first; nothing for an ordinary one.
function causes(segment, row) {
  const normal = normalMs(segment);
  const time = segment.column("time_ms")?.[row];
  if (normal === null || !(time > SLOW * normal)) return [];
  const excess = time - normal;
  const found = [];
  let rest = excess;
  for (const name of segment.phases) {
    const ms = segment.columns[name].data[row];
    if (STEP_PHASES.has(name) || !(ms > 0.05 * excess)) continue;
    found.push([name.slice("phase:".length), ms]);
    rest -= ms;
  }
  const isStall = stalls(segment).has(segment.column("iter")[row]);
  if (isStall && !segment.has("phase:stall") && rest > 0.05 * excess) found.push(["stall", rest]);
  return found.sort((a, b) => b[1] - a[1]);
}

// The slowest explained or unexplained spike around a place.
function spikeNear(view, at, reach) {
  let best = null;
  for (const segment of segments(view)) {
    const [x, times] = [segment.x(view.axis), segment.column("time_ms")];
    const limit = SLOW * (normalMs(segment) ?? Infinity);
    if (!times) continue;
    const count = segment.shown;
    for (let row = lowerBound(x, count, at - reach); row < count && x[row] <= at + reach; row += 1) {
      if (!(times[row] > limit) || times[row] <= (best?.time ?? 0)) continue;
      if (causes(segment, row).length) best = { segment, row, time: times[row] };
    }
  }
  return best;
}

function timeLines(segment, row) {
  const time = segment.column("time_ms")[row];
  const lines = [`${whereLine(segment, row)}: ${milliseconds(time)}`];
  const found = causes(segment, row);
  if (found.length) {
    const names = found.map(([name]) => phaseName(name)).join(" + ");
    lines.push(say("page-slow-because", { cause: names, normal: milliseconds(normalMs(segment)) }));
  }
  const phases = segment.phases
    .map((name) => [name.slice("phase:".length), segment.columns[name].data[row]])
    .filter(([, ms]) => ms > time / 1000)
    .sort((a, b) => b[1] - a[1]);
  if (phases.length > 1) {
    for (const [name, ms] of phases) lines.push([chip(phaseColor(name)), `${phaseName(name)} ${milliseconds(ms)}`]);
  }
  return lines;
}

function chip(color) {
  const element = make("span", { className: "chip" });
  element.style.background = `var(--${color})`;
  return element;
}

function timeChart(view) {
  return simple(view, "time", "time_ms", milliseconds, millisecondsTick, {
    isLog: true,
    canBeLog: true,
    caption: () => {
      const normal = view.runs.length === 1 ? view.runs[0].segments.map(normalMs).filter(Boolean).at(-1) : null;
      return normal ? say("page-normal", { normal: milliseconds(normal) }) : "";
    },
    marks: (_, chart, pen, done) => {
      for (const segment of segments(view)) {
        if (!done) boundaries(view, segment, chart, pen);
        spikes(view, segment, chart, pen, done?.get(segment) ?? 0);
      }
    },
    describe: (_, at, reach) => {
      const spike = spikeNear(view, at, reach);
      if (spike) {
        return { x: spike.segment.x(view.axis)[spike.row], lines: timeLines(spike.segment, spike.row) };
      }
      const found = [...nearest(view, at, reach)].filter(({ segment }) => segment.has("time_ms"));
      if (!found.length) return null;
      return {
        x: found[0].segment.x(view.axis)[found[0].row],
        lines: found.flatMap(({ segment, row }) => timeLines(segment, row)),
      };
    },
  });
}

// Evaluations and checkpoints, slow or not.
function boundaries(view, segment, chart, pen) {
  const [from, to] = chart.range;
  const bottom = MARGIN.top + chart.plotHeight;
  const tick = (iter, color, size) => {
    const place = segment.xAt(iter, view.axis);
    if (place < from || place > to) return;
    pen.fillStyle = chart.color(color);
    const at = chart.pixel(place);
    pen.beginPath();
    pen.moveTo(at, bottom - size);
    pen.lineTo(at - 4, bottom);
    pen.lineTo(at + 4, bottom);
    pen.fill();
  };
  const few = (list) => list.length < chart.plotWidth;
  if (few(segment.saves)) for (const [iter] of segment.saves) if (iter !== null) tick(iter, "phase-checkpoint", 12);
  if (few(segment.evals)) for (const [iter] of segment.evals) tick(iter, "phase-eval", 7);
}

// Slow iterations from a row on: the slowest in each column of pixels gets a dot.
function spikes(view, segment, chart, pen, first) {
  const [x, times] = [segment.x(view.axis), segment.column("time_ms")];
  const [from, to] = chart.range;
  const limit = SLOW * (normalMs(segment) ?? Infinity);
  if (!times) return;
  const tops = new Map();
  const start = Math.max(first, lowerBound(x, segment.shown, from));
  for (let row = start; row < segment.shown && x[row] <= to; row += 1) {
    if (!(times[row] > limit)) continue;
    const column = Math.round(chart.pixel(x[row]));
    if (!(tops.get(column)?.time >= times[row])) tops.set(column, { row, time: times[row] });
  }
  for (const { row, time } of tops.values()) {
    const found = causes(segment, row);
    if (!found.length) continue;
    pen.fillStyle = chart.color(phaseColor(found[0][0]));
    chart.dot(pen, chart.pixel(x[row]), time, 3.5);
  }
}

// -- where the time went, over time ----------------------------------------------------------------

class Shares extends Chart {
  // Its bins change with every row: it is drawn again now and then.
  grow() {
    const isDue = performance.now() - (this.drawnAt ?? 0) > SHARES_MS;
    if (this.isDue || isDue || this.element.hidden) this.ask();
  }

  scaleY() {
    [this.low, this.high] = [0, 100];
  }

  drawLine() {} // its lines just say where there are rows

  // Time by phase in each bin of the axis.
  count() {
    const [from, to] = this.range;
    const rows = [...segments(this.view)].filter((segment) => segment.count).map((segment) => {
      const x = segment.x(this.view.axis);
      return lowerBound(x, segment.shown, to) - lowerBound(x, segment.shown, from) + 1;
    });
    const bins = Math.max(1, Math.min(160, Math.floor(this.plotWidth / 5), Math.max(...rows)));
    const sums = new Map();
    const totals = new Float64Array(bins);
    for (const segment of segments(this.view)) {
      if (!segment.count) continue;
      const x = segment.x(this.view.axis);
      const edges = Array.from({ length: bins }, (_, bin) =>
        lowerBound(x, segment.shown, from + ((to - from) * bin) / bins));
      edges.push(lowerBound(x, segment.shown, to + 1e-9));
      for (const name of segment.phases) {
        const phase = name.slice("phase:".length);
        const data = segment.column(`sum:${name}`) ?? segment.column(name);
        if (!sums.has(phase)) sums.set(phase, new Float64Array(bins));
        // A log that prints every tenth iteration: the nine before it were steps as well.
        const [iters, numbers] = [segment.column("iter"), segment.column("num")];
        const times = phase === "step"
          ? (row) => (row ? Math.max(1, (iters[row] - iters[row - 1]) / (numbers?.[row] ?? 1)) : 1) : () => 1;
        for (let bin = 0; bin < bins; bin += 1) {
          let sum = 0;
          for (let row = edges[bin]; row < edges[bin + 1]; row += 1) sum += data[row] * times(row);
          sums.get(phase)[bin] += sum;
          totals[bin] += sum;
        }
      }
    }
    return { bins, sums, totals, names: byOrder(sums.keys()) };
  }
}

function sharesChart(view) {
  const spec = {
    id: "shares",
    title: "page-chart-shares",
    tick: (value) => percent(value, 0),
    lines: () => [...segments(view)].filter((segment) => segment.phases.length)
      .map((segment) => ({ x: segment.x(view.axis), y: segment.x(view.axis), count: segment.shown })),
    marks: (_, chart, pen) => {
      const counted = chart.books = chart.count();
      chart.drawnAt = performance.now();
      const width = chart.plotWidth / counted.bins;
      for (let bin = 0; bin < counted.bins; bin += 1) {
        let done = 0;
        for (const name of counted.names) {
          const share = (100 * counted.sums.get(name)[bin]) / counted.totals[bin];
          if (!(share > 0)) continue;
          const [top, bottom] = [chart.y(done + share), chart.y(done)];
          pen.fillStyle = chart.color(phaseColor(name));
          pen.fillRect(MARGIN.left + bin * width, top, width + 0.5, bottom - top);
          done += share;
        }
      }
    },
    describe: (_, at) => {
      const counted = spec.chart.books;
      const [from, to] = view.range();
      if (!counted) return null;
      const bin = Math.min(counted.bins - 1, Math.floor(((at - from) / (to - from)) * counted.bins));
      if (!counted.totals[bin]) return null;
      const place = view.axis === "time" ? seconds(at) : say("page-iteration", { number: whole(at) });
      const lines = [`${place}: ${milliseconds(counted.totals[bin])}`];
      for (const name of counted.names) {
        const ms = counted.sums.get(name)[bin];
        if (ms > 0) {
          const share = percent((100 * ms) / counted.totals[bin]);
          lines.push([chip(phaseColor(name)), `${phaseName(name)} ${share}`]);
        }
      }
      return { x: at, lines };
    },
  };
  return spec;
}

// -- speed ----------------------------------------------------------------------------------------

function tokensPerSecond(segment) {
  if (segment.has("tok_s")) return segment.column("tok_s");
  const tokens = segment.run.part(segment)?.tokens_per_iter;
  if (!tokens || !segment.has("time_ms")) return undefined;
  return segment.derive("tokens", () => perStep(segment, 1000 * tokens));
}

function perStep(segment, work) {
  const steps = segment.column("step_ms") ?? segment.column("phase:step") ?? segment.column("time_ms");
  const result = new Float32Array(segment.count);
  for (let row = 0; row < segment.count; row += 1) result[row] = work / steps[row];
  return result;
}

// MFU of the step alone, against the device that ran, where that is known.
function cleanMfu(segment) {
  const figures = segment.run.part(segment)?.mfu;
  if (!figures?.work) return segment.column("mfu");
  if (!segment.has("time_ms")) return undefined;
  const known = figures.peak_tflops && figures.assumed_tflops;
  const scale = known ? figures.assumed_tflops / figures.peak_tflops : 1;
  return segment.derive("mfu", () => perStep(segment, scale * figures.work));
}

function mfuCaption(run) {
  const part = run.story?.parts.at(-1);
  const value = part?.mfu.corrected ?? part?.mfu.clean;
  if (value === null || value === undefined) return "";
  const source = (run.story.environment.find(([key]) => key === "peak_source") ?? [])[1];
  const peak = part.mfu.corrected !== null ? part.mfu.peak_tflops : part.mfu.assumed_tflops;
  const named = source ?? say(part.mfu.corrected !== null ? "page-peak-device" : "page-peak-assumed", {
    device: part.mfu.device ?? say("page-unknown"), peak: short(peak),
  });
  return say("page-mfu", { value: percent(value, 2), source: named });
}

function allCharts(view) {
  const shares = sharesChart(view);
  const charts = {
    loss: new Chart(view, lossChart(view)),
    shares: shares.chart = new Shares(view, shares),
    time: new Chart(view, timeChart(view)),
    tokens: new Chart(view, simple(view, "tokens", tokensPerSecond, large, largeTick, { fromZero: true })),
    mfu: new Chart(view, simple(view, "mfu", cleanMfu, (value) => percent(value, 2), (value) => percent(value, digitsFor(value, 1)), {
      fromZero: true,
      caption: () => view.runs.map(mfuCaption).filter(Boolean).join(" · "),
    })),
    lr: new Chart(view, simple(view, "lr", "lr", rate, tidy, { fromZero: true })),
    grad: new Chart(view, simple(view, "grad", "grad_norm", short, tidy, { canBeLog: true })),
    memory: new Chart(view, simple(view, "memory", "memory_bytes", bytes, bytes, { fromZero: true })),
  };
  for (const name of ["loss", "time"]) charts[name].element.classList.add("tall");
  return charts;
}
