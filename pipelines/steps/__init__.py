"""What happens to a text, step by step; each is a function from a batch to the verdict on it."""
