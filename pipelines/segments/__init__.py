"""What the phases of a run hand to each other, in files."""
