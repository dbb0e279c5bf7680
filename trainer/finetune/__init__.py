"""Fine-tuning: a run that learns the items of a task, and answers them."""
