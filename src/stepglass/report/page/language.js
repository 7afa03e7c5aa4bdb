// The language of the page: requested, or chosen earlier, or that of the browser.

function languageChoice() {
  const choice = document.getElementById("language");
  const label = () => choice.setAttribute("aria-label", say("page-language-choice"));
  label();
  choice.replaceChildren(...Object.keys(WORDS).map((code) =>
    make("option", { value: code, selected: code === language }, WORDS[code]["page-language"])));
  choice.addEventListener("change", () => {
    setLanguage(choice.value);
    remember(language);
    label();
    if (view.charts.length) fill(); else runList?.build();
  });
}

function remember(code) {
  try { localStorage.setItem("stepglass-language", code); } catch { /* blocked for local files */ }
}

function firstLanguage() {
  const asked = document.body.dataset.language;
  if (asked && asked !== "auto") return asked;
  try {
    const before = localStorage.getItem("stepglass-language");
    if (before) return before;
  } catch { /* as above */ }
  const known = navigator.languages.map((code) => code.slice(0, 2)).find((code) => code in WORDS);
  return known ?? "en";
}
