"""The steps that turn documents into tokens; each step is a function of a batch of documents."""
