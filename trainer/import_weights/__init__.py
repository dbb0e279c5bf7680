"""Opens models, which come from runs, published GLMs or folders of transformers."""
