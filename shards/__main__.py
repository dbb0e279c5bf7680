"""Inspects and maintains datasets: `python -m shards inspect|view|verify|… DIR`."""

import sys
from collections.abc import Sequence

from shards.console import run_package


def main(words: Sequence[str] | None = None) -> int:
    """Run the command that the first word names and return its exit code."""
    return run_package("shards", sys.argv[1:] if words is None else words)


if __name__ == "__main__":
    sys.exit(main())
