"""The model: a transformer, what it pays attention to, its dropout, its loss, its sizes."""
