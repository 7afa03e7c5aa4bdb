// Every chart of the page, each from a file of charts/. They stand in this order in their sections.

const CHARTS = [
  lossChart,
  sharesChart,
  timeChart,
  tokensChart,
  mfuChart,
  lrChart,
  gradChart,
  memoryChart,
];
