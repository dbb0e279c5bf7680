"""Evaluates a trained model by its held-out loss and by benchmarks."""
