"""`--plan`: what a run takes, before it runs."""
