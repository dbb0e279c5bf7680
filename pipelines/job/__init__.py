"""Jobs from command line to manifest: building, appending, watching and estimating."""
