"""The machine: devices, memory, and the copies between them."""
