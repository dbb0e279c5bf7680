"""The end of a job: the account is checked, the manifest written last."""
