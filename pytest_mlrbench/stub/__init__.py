"""A scripted model provider on this machine, for tests: nothing of it is imported by a run."""
