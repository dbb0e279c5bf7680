"""The command `python -m trainer.evaluate`, and validation in training."""
