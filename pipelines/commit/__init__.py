"""Ends a job: checks the account, and writes the manifest last."""
