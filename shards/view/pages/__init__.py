"""The pages: a function of the viewer and of what is asked for each."""
