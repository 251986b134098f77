"""Papers beside their runs, and what they cite."""
