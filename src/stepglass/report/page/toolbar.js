// The controls above the charts: axis, zoom, smoothing, and a line about the visible part.

function hasTimes() {
  return view.runs.some((run) => run.has("time_ms"));
}

function toolbar() {
  const button = (text, key, act) => {
    const element = make("button", { type: "button", title: say(key) }, text);
    element.setAttribute("aria-label", say(key));
    element.addEventListener("click", act);
    return element;
  };
  const axis = make("select", { id: "axis", disabled: !hasTimes() },
    make("option", { value: "iter", selected: view.axis === "iter" }, say("page-axis-iter")),
    make("option", { value: "time", selected: view.axis === "time" }, say("page-axis-time")));
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
    make("output", { id: "range" }),
    make("p", { id: "thinned", className: "caption" }),
  ];
}

function showRange() {
  const [from, to] = view.range();
  const show = (value) => (view.axis === "time" ? elapsed(value) : named(value));
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
