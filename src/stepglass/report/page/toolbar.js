// The controls above the charts: axis, zoom, smoothing, and a line about the visible part.

function toolbar() {
  const button = (text, key, act) => {
    const element = make("button", { type: "button", title: say(key) }, text);
    element.setAttribute("aria-label", say(key));
    element.addEventListener("click", act);
    return element;
  };
  const axis = make("select", { id: "axis" }, ...Object.keys(AXES).map((name) =>
    make("option", { value: name, selected: view.axis === name }, say(`page-axis-${name}`))));
  axis.setAttribute("aria-label", say("page-axis"));
  axis.addEventListener("change", () => { view.axis = axis.value; view.show(null); });
  const slider = make("input", { type: "range", min: 0, max: 99, value: 100 * view.smoothing, id: "smoothing" });
  slider.addEventListener("input", () => { view.smoothing = slider.value / 100; charts.loss.ask(); });
  return [
    make("label", {}, say("page-axis"), axis),
    make("span", { className: "group" },
      button("−", "page-zoom-out", () => view.scale(2)),
      button("+", "page-zoom-in", () => view.scale(0.5)),
      button("◀", "page-left-key", () => view.move(-0.5)),
      button("▶", "page-right-key", () => view.move(0.5)),
      button(say("page-reset"), "page-reset", () => view.show(null))),
    make("label", {}, say("page-smoothing"), slider),
    button("CSV", "page-csv", () => saveCsv(view)),
    make("output", { id: "range" }),
    make("div", { id: "legend", className: "legend" }, ...runLegend(view)),
    make("p", { id: "thinned", className: "caption" }),
  ];
}

// Offers the axes that all runs have. With one alone, there is nothing to choose.
function offerAxes() {
  const axis = document.getElementById("axis");
  for (const option of axis.options) option.disabled = !canAlign(view, option.value);
  axis.disabled = [...axis.options].every((option) => option.disabled || option.value === "iter");
}

function showRange() {
  const [from, to] = view.range();
  const { show } = AXES[view.axis];
  offerAxes();
  setText(document.getElementById("range"), view.runs.length ? `${show(from)} – ${show(to)}` : "");
  setText(document.getElementById("thinned"), thinnedText());
}

// The note that the page of a long run does not contain every iteration.
function thinnedText() {
  const [drawn, total] = ["numRows", "numPrinted"].map((name) =>
    view.runs.reduce((sum, run) => sum + run[name], 0));
  if (drawn >= total) return "";
  const isLive = document.body.dataset.mode === "live";
  return say(isLive ? "page-thinned-live" : "page-thinned", { total, drawn });
}
