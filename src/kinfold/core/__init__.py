"""Pure functions on tensors: similarities, pairs, mining, proxies and guarded reductions."""
