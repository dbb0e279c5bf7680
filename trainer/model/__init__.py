"""The model: a transformer, its attention, its dropout, its loss and its sizes."""
