"""Turns texts into examples with blanks, which a GLM learns to fill in."""
