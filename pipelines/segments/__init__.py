"""The files that the stages of a run hand to each other."""
