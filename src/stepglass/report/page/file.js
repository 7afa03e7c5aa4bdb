// A page in a file, which contains all its data.

// The page is redrawn after these columns, while the others are still being decoded.
const SEEN_EARLY = ["loss", "time_ms"];

async function openReport() {
  const { runs } = JSON.parse(document.getElementById("story").textContent);
  view.runs = runs.map(({ story }, i) => {
    const run = new Run(i);
    run.isCompared = runs.length > 1;
    run.tell(story);
    return run;
  });
  build();
  fill();
  // The texts come first, then the rows, the most important columns first, to show something early.
  for (const [i, { messages }] of runs.entries()) {
    for (const message of messages) {
      const columns = {};
      for (const [name, column] of Object.entries(message.columns)) {
        columns[name] = await numbersOf(await stored(column), message.count);
        if (!SEEN_EARLY.includes(name)) continue;
        view.runs[i].take(message, columns);
        view.changed();
        await frame();
      }
      view.runs[i].take(message, columns);
    }
  }
  fill();
  document.body.dataset.ready = "yes";
  view.isComplete = true;
  view.drawAhead();
}

// A long column is the text of an element further down in the file. It is complete when another
// element follows it.
async function stored(column) {
  if (!("at" in column)) return column;
  const element = () => document.getElementById(column.at);
  while (document.readyState === "loading" && !element()?.nextElementSibling) await frame();
  return { [column.kind]: element().textContent };
}

const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
