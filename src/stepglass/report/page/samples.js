// What the model wrote along the way, side by side, so that one sees it learn.

const SAMPLES_IN_A_ROW = 4;
const MOST_SAMPLES = 50;

// At most `most` of a list, at equal distances, with the first and the last.
function evenly(list, most) {
  if (list.length <= most) return list;
  return Array.from({ length: most }, (_, i) => list[Math.round((i * (list.length - 1)) / (most - 1))]);
}

// The samples of a run, those of undone iterations left out.
function samplesOf(run) {
  return run.segments.filter((segment) => strength(segment) === 1).flatMap((segment) =>
    segment.samples.filter(([, iter]) => iter === null || iter <= segment.end)
      .map(([, iter, text]) => ({ run, iter, text })));
}

function samplesSection(runs) {
  const all = runs.map(samplesOf).filter((list) => list.length);
  if (!all.length) return [];
  if (runs.length > 1) return [cards(all.map((list) => list.at(-1)), true)];
  const [samples] = all;
  const few = evenly(samples, SAMPLES_IN_A_ROW);
  const rest = few.length < samples.length ? make("details", {},
    make("summary", {}, say("page-all-samples", { count: samples.length })),
    cards(evenly(samples, MOST_SAMPLES), false)) : null;
  return [cards(few, false), rest].filter(Boolean);
}

function cards(samples, isNamed) {
  return make("div", { className: "samples" }, ...samples.map((sample) => make("figure", {},
    make("figcaption", {}, ...sampleHeading(sample, isNamed)),
    make("pre", {}, sample.text))));
}

// Where a sample was written, and how good the model was there.
function sampleHeading({ run, iter }, isNamed) {
  const where = iter === null ? "" : say("page-iteration", { number: named(iter) });
  const evals = run.segments.flatMap((segment) => segment.shownEvals);
  const val = evals.findLast(([at]) => at === iter)?.[1];
  return [
    ...(isNamed ? [chip(ownColor(run)), make("b", {}, run.name), " "] : []), where,
    Number.isFinite(val) ? make("small", {}, say("page-val-only", { loss: loss(val) })) : null,
  ];
}
