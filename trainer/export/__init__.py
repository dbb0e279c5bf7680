"""Exports a trained model to files that other programs read: `python -m trainer.export`."""
