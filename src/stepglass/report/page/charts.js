// All charts of the page, in their order within each section. Each is in a file of charts/.

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
