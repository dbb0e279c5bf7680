"""Formats results as text: a line about the machine, and tables with aligned columns."""

import datetime
import os
import platform
from collections.abc import Sequence
from pathlib import Path


def machine() -> str:
    """Return the line above each table: processor, cores, Python and date."""
    cores = len(os.sched_getaffinity(0))
    today = datetime.datetime.now(datetime.UTC).date()
    return f"{_processor()}, {cores} cores, Python {platform.python_version()}, {today}"


def render(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with the first column aligned left, and all others aligned right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
