"""A job from its command line to its manifest: new, append, watch, commit, account."""
