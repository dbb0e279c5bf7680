"""Inputs: the files of a corpus, wherever they lie, and how they are cut."""
