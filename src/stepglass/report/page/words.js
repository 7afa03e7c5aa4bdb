// Sentences in the language of the page. WORDS comes from the catalogues of `explain`.

let language = "en";
const plurals = new Map(); // the plural rules of each language

function setLanguage(code) {
  language = code in WORDS ? code : "en";
  document.documentElement.lang = language;
}

// The sentence for a key. A value that is a number is a count: it is written with the separators of
// the language and chooses the plural. A number that names something (iter 5000) is given as text.
function say(key, values = {}) {
  return said(WORDS[language][key] ?? key, values);
}

// A sentence is a text with {names} of values, or a list of such texts and choices between texts.
function said(sentence, values) {
  if (Array.isArray(sentence)) return sentence.map((part) => said(part, values)).join("");
  if (typeof sentence !== "string") {
    return said(sentence.texts[variant(values[sentence.by])] ?? sentence.texts[sentence.default], values);
  }
  return sentence.replace(/\{(\w+)\}/g, (placeholder, name) => {
    const value = name in values ? values[name] : placeholder;
    return typeof value === "number" ? whole(value) : value;
  });
}

// The name of the text to choose for a value: the plural category of a number.
function variant(value) {
  if (typeof value !== "number") return value;
  if (!plurals.has(language)) plurals.set(language, new Intl.PluralRules(language));
  return plurals.get(language).select(value);
}

// French has a space before the colon.
function labelled(label, text) {
  return say("page-labelled", { label, text });
}
