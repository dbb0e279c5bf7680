"""Evaluation of a trained model: held-out loss, and benchmarks."""
