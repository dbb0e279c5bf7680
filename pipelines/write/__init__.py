"""WriteDataset, which makes a dataset of the documents of a custom pipeline."""
