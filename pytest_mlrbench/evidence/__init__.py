"""Is it real: which state a run really reached, and what supports that."""
