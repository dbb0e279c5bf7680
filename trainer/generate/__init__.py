"""Text from a model: prompts with blanks, what fills them, token by token."""
