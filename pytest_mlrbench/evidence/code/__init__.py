"""Programs, followed without being run: what their saved results are made of."""
