"""A trained model as files that other programs read: `python -m trainer.export`."""
