"""HTTP on this machine: the address, who may call, and limits. Used by `watch` and `serve`."""
