"""Changes, checks and copies of datasets: remove, compact, prune, verify and place."""
