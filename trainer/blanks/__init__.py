"""Blanks: texts become the examples that GLM learns to fill in."""
