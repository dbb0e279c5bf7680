"""The flag that names the runner; upper and lower case do not matter in the name."""

from collections.abc import Sequence
from itertools import pairwise

RUNNER = "--runner"


def with_runner_spelled(words: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return flags with the runner spelled as in `names`, if its name matches one in any case."""
    spelled = {name.casefold(): name for name in names}
    respelled = [*words]
    for at, (before, word) in enumerate(pairwise(["", *words])):
        flag, equals, name = word.rpartition("=")
        if (flag if equals else before) == RUNNER:
            respelled[at] = f"{flag}{equals}{spelled.get(name.casefold(), name)}"
    return respelled
