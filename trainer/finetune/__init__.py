"""Fine-tunes a model on the items of a task, and answers the task's test items."""
