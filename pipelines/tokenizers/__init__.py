"""Turns texts into token ids: `tokenizer.py` loads tokenizers; each kind of model has a module."""
