"""The command `python -m trainer.generate`, and the same from Python."""
