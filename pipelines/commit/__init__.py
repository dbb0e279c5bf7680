"""The end of a job: checks the account, then writes the manifest last."""
