"""WriteDataset, which makes a dataset from the documents of a custom pipeline."""
