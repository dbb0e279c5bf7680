"""Fine-tuning: questions of a task in, a model that answers them out."""
