"""Lists the commands of this package."""

import sys

from shards.console import run_package

if __name__ == "__main__":
    sys.exit(run_package("trainer", sys.argv[1:]))
