"""Models wherever they come from: runs, published GLMs, folders of transformers."""
