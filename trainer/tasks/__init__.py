"""Turns tasks into rows of tokens: questions with choices, blanks to fill, and texts to write."""
