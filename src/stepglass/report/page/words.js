// Sentences in the language the page is read in. WORDS comes from the catalogues of `explain`.

let language = "en";

function setLanguage(code) {
  language = code in WORDS ? code : "en";
  document.documentElement.lang = language;
}

// A sentence by its key, with its {values} put in.
function say(key, values = {}) {
  const text = WORDS[language][key] ?? key;
  return text.replace(/\{(\w+)\}/g, (placeholder, name) => (name in values ? values[name] : placeholder));
}
