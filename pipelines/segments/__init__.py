"""The files that pass data from one stage of a run to the next."""
