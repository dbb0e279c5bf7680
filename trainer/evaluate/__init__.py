"""What a trained model knows: held-out loss, and benchmarks."""
