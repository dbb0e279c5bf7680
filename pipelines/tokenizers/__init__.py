"""The kinds of tokenizer, one library each; `pipelines.tokenizers.tokenizer` is their face."""
