"""The windows of each training step: a pure function of the options and the data of a run."""
