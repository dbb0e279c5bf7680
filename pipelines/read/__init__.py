"""Finds the files of a corpus, cuts them into splits, and turns their bytes into records."""
