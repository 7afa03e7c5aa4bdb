// Values of the training step: learning rate, gradient norm and memory.

const lrChart = curve({
  id: "lr", section: "inside", values: "lr", color: "blue", format: rate, tick, fromZero: true,
});

const gradChart = curve({
  id: "grad", section: "inside", values: "grad_norm", color: "rose", format: short, tick, canBeLog: true,
});

const memoryChart = curve({
  id: "memory", section: "inside", values: "memory_bytes", color: "olive", format: bytes, tick: bytes,
  fromZero: true,
});
