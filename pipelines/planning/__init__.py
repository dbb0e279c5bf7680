"""What a run would take, told before it runs: `--plan`."""
