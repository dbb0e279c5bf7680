"""The kinds of tokenizer, one library each; `pipelines.tokenizer` is their face."""
