"""From a command line to a manifest."""
