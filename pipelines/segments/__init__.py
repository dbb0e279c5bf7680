"""What the stages of a run hand to each other, in files."""
