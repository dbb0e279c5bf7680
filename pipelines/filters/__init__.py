"""Questions to texts on their way to the tokenizer, each a function of texts alone."""
