"""Reading: the files of a corpus, their splits, and bytes as records."""
