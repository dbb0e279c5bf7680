"""Inspects the files and records at a path, and names the command that reads the records."""
