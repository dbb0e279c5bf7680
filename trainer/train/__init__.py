"""The command `python -m trainer.train`: a run of training."""
