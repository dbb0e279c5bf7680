"""What a pipeline of your own hands to WriteDataset becomes a dataset."""
