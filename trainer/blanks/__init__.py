"""Blanks: turns texts into examples that GLM learns to fill in."""
