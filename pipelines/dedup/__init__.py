"""Documents that repeat: equal texts, and near-duplicates."""
