"""A split becomes segments."""
