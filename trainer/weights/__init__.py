"""Weights wherever they come from: runs, published GLMs, Hugging Face folders."""
