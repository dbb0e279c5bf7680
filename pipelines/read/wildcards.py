"""Where the wildcards of a glob begin, on a disk or behind a URL."""

import glob
from collections.abc import Sequence


def at_wildcard(parts: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the parts of a path before the first with a wildcard, and the others."""
    magic = [number for number, part in enumerate(parts) if glob.has_magic(part)]
    first = magic[0] if magic else len(parts)
    return parts[:first], parts[first:]
