"""Where work is done: in this process, in workers, on a cluster."""
