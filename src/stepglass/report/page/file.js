// A page in a file: the file holds everything it shows.

// After these columns there is something new to see while the others are still being read.
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
  // Rows come after the words, and the most wanted columns first: there is something to see at once.
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
}

// A long column is the text of an element further down in the file. It is whole once another element
// follows it.
async function stored(column) {
  if (!("at" in column)) return column;
  const element = () => document.getElementById(column.at);
  while (document.readyState === "loading" && !element()?.nextElementSibling) await frame();
  return { [column.kind]: element().textContent };
}

const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
