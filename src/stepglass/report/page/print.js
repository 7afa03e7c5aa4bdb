// Paper: all charts are drawn for its width and in light colours, whether they were seen or not.

function forPaper(isPrinting) {
  document.documentElement.classList.toggle("printing", isPrinting);
  colors.known.clear();
  for (const closed of isPrinting ? document.querySelectorAll("#compare details") : []) closed.open = true;
  for (const chart of view.charts) chart.draw();
}

addEventListener("beforeprint", () => forPaper(true));
addEventListener("afterprint", () => forPaper(false));
