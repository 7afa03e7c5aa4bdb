// The findings of one run, or of several: what is found in more than one is said once.

const LEVELS = ["problem", "advice", "note"];

function findingsSection(runs) {
  const told = runs.filter((run) => run.story);
  const groups = new Map(); // by rule
  for (const run of told) {
    for (const found of run.story.findings) {
      const key = runs.length > 1 ? found.rule : `${groups.size}`;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push({ run, found });
    }
  }
  if (!told.length) return [];
  if (!groups.size) return [make("p", {}, say("no-findings"))];
  const level = (group) => LEVELS.indexOf(group[0].found.level);
  const sorted = [...groups.values()];
  if (runs.length > 1) sorted.sort((a, b) => level(a) - level(b) || b.length - a.length);
  return [make("ol", { className: "findings" }, ...sorted.map((group) => finding(group, told)))];
}

// A finding with its evidence. Of several runs, the first is quoted in full, the others by title.
function finding(group, told) {
  const [{ found }, ...others] = group;
  const named = new Set([found.title[language]]);
  const different = others.filter(({ found: other }) => {
    const isNew = !named.has(other.title[language]);
    named.add(other.title[language]);
    return isNew;
  });
  return make("li", { className: found.level },
    make("h3", {}, found.title[language]),
    told.length > 1 ? foundIn(group, told) : null,
    make("p", {}, found.text[language]),
    ...different.map(({ run, found: other }) =>
      make("p", { className: "other" }, chip(ownColor(run)), labelled(run.name, other.title[language]))),
    make("p", { className: "grade" }, found.grade[language]),
    found.change ? command(found.change) : null);
}

// The runs that a finding is about.
function foundIn(group, told) {
  const runs = [...new Set(group.map(({ run }) => run))];
  const names = runs.length === told.length
    ? [say("page-all-runs", { count: told.length })]
    : runs.flatMap((run) => [chip(ownColor(run)), run.name, " "]);
  const quoted = runs.length > 1 ? make("small", {}, say("page-quoted", { name: runs[0].name })) : null;
  return make("p", { className: "runs" }, ...names, " ", quoted);
}

// A command, with a button to copy it.
function command(text) {
  const button = make("button", { type: "button" }, say("page-copy"));
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = say("page-copied");
    } catch {
      getSelection().selectAllChildren(code);
    }
  });
  const code = make("code", {}, text);
  return make("p", { className: "command" }, code, button);
}
