"""Many experiments from one file: planned, run once each, chosen among, compared."""
