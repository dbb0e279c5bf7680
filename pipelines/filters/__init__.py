"""What the chain asks of a text before it is tokenized, each a function of texts."""
