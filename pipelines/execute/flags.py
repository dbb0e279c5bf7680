"""Handles flags for Beam; loads Beam, which takes a second of CPU, only if necessary."""

from collections.abc import Sequence

from pipelines.execute.runner_name import RUNNER, with_runner_spelled
from shards.commands.command import Parser, log_errors
from shards.commands.spelling import nearest

_CERTAIN = 0.8
"""The similarity to a command's flag above which a flag without underscores cannot be Beam's."""

_OWN_RUNNERS = ("DirectRunner", "FnApiRunner")
_THIS_MACHINE = {
    (),
    *((f"{RUNNER}={name}",) for name in _OWN_RUNNERS),
    *((RUNNER, name) for name in _OWN_RUNNERS),
}
"""The lists of flags whose meaning is clear even if Beam is not loaded."""


ON_COMMAND_LINE = "after --, as in: -- --checkpointing_interval=5000"
"""The place on a command line where flags that only the runner knows belong, for messages."""


def refuse_unknown(parser: Parser, words: Sequence[str], *, place: str) -> None:
    """Refuse flags that neither a command nor Beam has; Beam is loaded only in unclear cases.

    Args:
        parser: The parser of the command.
        words: The words of the command line that the parser does not know.
        place: The place where flags that only the runner knows belong, for the message.

    Raises:
        UserError: There are unknown flags.
    """
    strange = [flag for flag in parser.unknown_flags(words) if flag != RUNNER]
    if all(_is_certain(flag, parser) for flag in strange):
        parser.refuse(strange)
        return
    from pipelines.execute.cluster import beam_parser  # noqa: PLC0415  loads Beam

    known = beam_parser().flags
    parser.refuse(
        [flag for flag in strange if flag not in known],
        others=known,
        more="Beam's Python SDK does not have it either; flags that only the runner knows go "
        f"{place}.",
    )


def _is_certain(flag: str, parser: Parser) -> bool:
    """Return whether a flag that a command does not know is certainly not a flag of Beam."""
    if parser.is_foreign(flag):
        return True
    near = nearest(flag, parser.flags, most=1, likeness=_CERTAIN)
    return bool(near) and ("_" not in flag or flag.replace("_", "-") in near)


def beam_flags(words: Sequence[str]) -> list[str]:
    """Return Beam's flags from the words of a command line that are not flags of the corpus.

    Args:
        words: Flags of Beam's Python SDK, then `--` and the flags that only the runner knows.

    Raises:
        UserError: Beam's Python SDK does not know one of the flags before `--`.
    """
    words = with_runner_spelled(words, _OWN_RUNNERS)
    if tuple(words) in _THIS_MACHINE:
        return [*words]
    log_errors()  # before Beam configures the log in its own way
    from pipelines.execute.cluster import known_flags  # noqa: PLC0415  loads Beam

    return known_flags(words)


def engine_name(flags: Sequence[str]) -> str:
    """Return the name of the runner that the flags select; "" for this machine's workers."""
    if tuple(flags) in _THIS_MACHINE:
        return ""
    from pipelines.execute.cluster import runner_name  # noqa: PLC0415  loads Beam

    name = runner_name(flags)
    return "" if name in _OWN_RUNNERS else name
