"""Runs once more: with the same seed, another one, and corrupted input."""
