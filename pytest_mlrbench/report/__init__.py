"""Reports: projections of the run folder, each of which can be made again from it."""
