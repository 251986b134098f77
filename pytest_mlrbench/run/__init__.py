"""One case from start to verdict, and what of it is kept on disk."""
