// Speed: tokens per second, and MFU of the training step.

const tokensChart = curve({
  id: "tokens", section: "speed", values: tokensPerSecond, color: "teal", format: large, tick: largeTick,
  fromZero: true,
});

const mfuChart = curve({
  id: "mfu", section: "speed", values: cleanMfu, color: "violet", format: (value) => percent(value, 2),
  tick: percentTick, fromZero: true,
  caption: (view) => (view.runs.length === 1 ? mfuCaption(view.runs[0]) : ""), // the table has those of several
});

function tokensPerSecond(segment) {
  if (segment.has("tok_s")) return segment.column("tok_s");
  const tokens = segment.run.part(segment)?.tokens_per_iter;
  if (!tokens || !segment.has("time_ms")) return undefined;
  return segment.derive("tokens", () => perStep(segment, 1000 * tokens));
}

// Work divided by the time of the training step alone, for each row.
function perStep(segment, work) {
  const steps = segment.column("step_ms") ?? segment.column("phase:step") ?? segment.column("time_ms");
  const result = new Float32Array(segment.count);
  for (let row = 0; row < segment.count; row += 1) result[row] = work / steps[row];
  return result;
}

// MFU of the step alone, relative to the peak of the device that ran, if that is known.
function cleanMfu(segment) {
  const figures = segment.run.part(segment)?.mfu;
  if (!figures?.work) return segment.column("mfu");
  if (!segment.has("time_ms")) return undefined;
  const known = figures.peak_tflops && figures.assumed_tflops;
  const scale = known ? figures.assumed_tflops / figures.peak_tflops : 1;
  return segment.derive("mfu", () => perStep(segment, scale * figures.work));
}

// MFU of an ordinary step, with the peak that it divides by.
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
