"""Which windows a run trains on at which step: a pure function of its options and its data."""
