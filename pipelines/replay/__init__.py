"""Records that a run rejected, read again into a dataset."""
