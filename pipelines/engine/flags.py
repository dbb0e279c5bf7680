"""Flags for Beam, understood without it where they can be: it takes a second of CPU to load."""

from collections.abc import Sequence

RUNNER = "--runner"
_OWN_RUNNERS = ("DirectRunner", "FnApiRunner")
_THIS_MACHINE = {
    (),
    *((f"{RUNNER}={name}",) for name in _OWN_RUNNERS),
    *((RUNNER, name) for name in _OWN_RUNNERS),
}
"""The flags that need no Beam to tell what they mean."""


def beam_names() -> list[str]:
    """Return the names of all flags of Beam's Python SDK."""
    from pipelines.engine.cluster import beam_parser  # noqa: PLC0415  loads Beam

    return beam_parser().flags


def beam_flags(words: Sequence[str]) -> list[str]:
    """Return Beam's flags, out of the words of a command line that are not flags of the corpus.

    Args:
        words: Flags of Beam's Python SDK; then, after `--`, those that only the runner knows.

    Raises:
        UserError: Beam's Python SDK does not know one of the flags before `--`.
    """
    if tuple(words) in _THIS_MACHINE:
        return [*words]
    from pipelines.engine.cluster import known_flags  # noqa: PLC0415  loads Beam

    return known_flags(words)


def engine_name(flags: Sequence[str]) -> str:
    """Return the name of the runner that the flags select; empty for this machine's workers."""
    if tuple(flags) in _THIS_MACHINE:
        return ""
    from pipelines.engine.cluster import runner_name  # noqa: PLC0415  loads Beam

    name = runner_name(flags)
    return "" if name in _OWN_RUNNERS else name
