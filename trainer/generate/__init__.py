"""Generates text with a model, which fills the blanks of prompts token by token."""
