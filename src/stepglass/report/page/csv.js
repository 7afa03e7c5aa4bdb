// The rows of the visible part as a file for a spreadsheet.

const CSV_COLUMNS = ["loss", "time_ms", "step_ms", "mfu", "lr", "grad_norm", "tok_s", "memory_bytes"];

function csvText(view) {
  const [from, to] = view.range();
  const segments = segmentsOf(view);
  const names = [
    ...CSV_COLUMNS.filter((name) => segments.some((segment) => segment.has(name))),
    ...phasesOf(segments).map((name) => PHASE + name),
  ];
  const lines = [["run", "iter", "elapsed_s", ...names, "val_loss", "val_se", "eval_train_loss"].join(",")];
  for (const segment of segments) {
    const evals = new Map(segment.shownEvals.map((done) => [done[0], done]));
    const x = segment.x(view.axis);
    const [run, iters] = [csvName(segment.run.name), segment.column("iter")];
    const first = segment.count ? lowerBound(x, segment.shown, from) : 0;
    for (let row = first; row < segment.shown && x[row] <= to; row += 1) {
      const done = evals.get(iters[row]);
      evals.delete(iters[row]);
      lines.push([run, iters[row], segment.has("time_ms") ? csvNumber(segment.elapsed.data[row]) : "",
        ...names.map((name) => csvNumber(segment.column(name)?.[row])), ...csvEval(done)].join(","));
    }
    // An evaluation may be of an iteration without a row: after the last one, or not printed.
    for (const [iter, done] of evals) {
      const at = segment.xAt(iter, view.axis);
      if (at >= from && at <= to) lines.push([run, iter, "", ...names.map(() => ""), ...csvEval(done)].join(","));
    }
  }
  return `${lines.join("\r\n")}\r\n`;
}

const csvEval = (done) => [1, 2, 3].map((place) => csvNumber(done?.[place]));

// The page keeps about five digits.
function csvNumber(value) {
  return Number.isFinite(value) ? String(Number(value.toPrecision(7))) : "";
}

// A spreadsheet would compute a name that begins like a formula.
function csvName(name) {
  return `"${/^[=+\-@\t\r]/.test(name) ? "'" : ""}${name.replaceAll('"', '""')}"`;
}

function saveCsv(view) {
  const address = URL.createObjectURL(new Blob([csvText(view)], { type: "text/csv" }));
  const name = view.runs.length === 1 ? view.runs[0].name : "runs";
  const link = make("a", { href: address, download: `${name.replace(/[^\w.-]+/g, "_") || "run"}.csv` });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
