// Creates elements of the page. Strings from a log or a model become text, never markup.

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// Does nothing if the text is unchanged, because the browser would compute the layout again.
function setText(element, text) {
  if (element && element.textContent !== text) element.textContent = text;
}

// A small square in a colour of the style sheet.
function chip(color) {
  const element = make("span", { className: "chip" });
  element.style.background = `var(--${color})`;
  return element;
}

// The style sheet's colours in a form for a canvas. Cached until light or dark mode changes.
const colors = {
  known: new Map(),
  of(name) {
    if (!this.known.has(name)) {
      this.probe ??= document.body.appendChild(make("span", { hidden: true }));
      this.probe.style.color = `var(--${name})`;
      this.known.set(name, getComputedStyle(this.probe).color);
    }
    return this.known.get(name);
  },
};
