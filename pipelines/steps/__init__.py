"""The steps between a record and its tokens: each a function of a batch of documents."""
