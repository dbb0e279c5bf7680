"""Texts to token ids: `tokenizer.py` is the room's face; each kind of model has a module."""
