"""A trained model opens with its tokenizer, from wherever it was saved."""
