"""What is at a path: its files, its records, and the command that reads them."""
