"""List the commands of this package."""

import sys

from shards.console import list_commands

if __name__ == "__main__":
    sys.exit(list_commands("trainer", sys.argv[1:]))
