"""ProcessSplits: a split becomes segments."""
