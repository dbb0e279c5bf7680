"""Finds repeated documents: equal texts and near-duplicates."""
