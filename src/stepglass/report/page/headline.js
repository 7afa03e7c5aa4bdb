// The figures of a run that people ask for first, taken from the newest rows: while a run goes on,
// its story is older than they are.

// The last row with a loss.
function lastLoss(run) {
  for (const segment of [...run.segments].reverse()) {
    const values = segment.column("loss");
    const row = values ? segment.count - 1 : -1;
    if (row < 0) continue;
    const [iter, part] = [segment.column("iter")[row], run.part(segment)];
    // A file keeps five digits of a row; the story has all.
    return { iter, loss: part?.last_iter === iter ? part.last_loss ?? NaN : values[row] };
  }
  return null;
}

// How far a run is: its story, with the number of the last row that has arrived since.
function stateNow(run) {
  const { state } = run.story;
  const last = lastLoss(run);
  if (state.step === null || !last) return state;
  const step = last.iter + 1;
  const rate = state.left_ms === null ? null : state.left_ms / Math.max(1, state.max_iters - state.step);
  return { ...state, step, left_ms: rate === null ? null : rate * Math.max(0, state.max_iters - step) };
}

function bitsPerByte(run, best) {
  const part = run.story.parts.at(-1);
  if (part?.bits_per_byte) return part.bits_per_byte; // the log prints it
  return best && part?.bits_per_nat ? best.val * part.bits_per_nat : null;
}

// The figures as [name, value, note]. What is not known is left out.
function figuresOf(run) {
  const part = run.story.parts.at(-1);
  const [last, best, state] = [lastLoss(run), run.best, stateNow(run)];
  const at = (iter) => (part?.last_iter === null ? "" : say("page-iteration", { number: named(iter) }));
  const bits = bitsPerByte(run, best);
  return [
    last && ["loss", last.loss, loss, at(last.iter)],
    best && !part?.is_bits_per_byte && ["best", best.val, loss, at(best.iter)],
    ["bits", bits, loss, best && bits ? at(best.iter) : ""],
    ["tokens", part?.tok_s, speed],
    ["step", part?.normal_ms, duration],
    ["parameters", part?.parameters, large],
    ["left", state.name === "running" ? state.left_ms : null, (ms) => elapsed(ms / 1000)],
  ].filter((figure) => figure && Number.isFinite(figure[1]))
    .map(([name, value, format, note]) => [say(`page-figure-${name}`), format(value), note ?? ""]);
}

// The line about the health of a run, with its figures below.
function healthSection(runs) {
  if (runs.length !== 1 || !runs[0].story) return [];
  const { health } = runs[0].story;
  const figures = figuresOf(runs[0]).map(([name, value, note]) => make("div", { className: "figure" },
    make("dt", {}, name), make("dd", {}, make("b", {}, value), note ? make("small", {}, note) : null)));
  return [
    make("p", { className: `health ${health.level}` },
      make("span", { className: "light" }, say(`page-level-${health.level}`)),
      make("span", {}, health.text[language]),
      make("span", { className: "state" }, stateText(stateNow(runs[0])))),
    make("dl", { className: "figures" }, ...figures),
  ];
}

function stateText(state) {
  const key = `page-state-${state.name}`;
  const name = say(key in WORDS[language] ? key : "page-state-unknown");
  // Nothing says how the run of a log ended.
  return [state.name === "log" ? null : name, progressText(state)].filter((text) => text !== null).join(", ");
}

// How far a run came: the number of its iterations, or if that is not known, the last one printed.
function progressText({ step, max_iters: max, iter }) {
  if (step === null) return Number.isFinite(iter) ? say("page-up-to", { number: named(iter) }) : null;
  return max !== null && step < max ? say("page-done-of", { count: step, max }) : say("page-done", { count: step });
}
