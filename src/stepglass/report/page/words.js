// Sentences in the language of the page. WORDS comes from the catalogues of `explain`.

let language = "en";

function setLanguage(code) {
  language = code in WORDS ? code : "en";
  document.documentElement.lang = language;
}

// The sentence for a key, with its {values} inserted.
function say(key, values = {}) {
  const text = WORDS[language][key] ?? key;
  return text.replace(/\{(\w+)\}/g, (placeholder, name) => (name in values ? values[name] : placeholder));
}
