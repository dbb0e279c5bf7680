"""The flag that names the runner; the name may be in upper or lower case."""

from collections.abc import Sequence
from itertools import pairwise

RUNNER = "--runner"


def with_runner_spelled(words: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return flags with the runner's name in the case that it has in `names`, if it is there."""
    spelled = {name.casefold(): name for name in names}
    respelled = [*words]
    for at, (before, word) in enumerate(pairwise(["", *words])):
        flag, equals, name = word.rpartition("=")
        if (flag if equals else before) == RUNNER:
            respelled[at] = f"{flag}{equals}{spelled.get(name.casefold(), name)}"
    return respelled
