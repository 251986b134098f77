"""MLR-Bench as pytest tests: every (task, stage) pair runs an agent, is judged and is recorded."""

__version__ = "0.1.0"
