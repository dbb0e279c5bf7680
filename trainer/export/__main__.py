"""The command `python -m trainer.export`."""

import sys
from collections.abc import Sequence

from shards.console import run_module


def main(words: Sequence[str]) -> int:
    """Export what the command line names and return the exit code."""
    return run_module("trainer.export", words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
