"""Cases of one kind, of which every test run has a few and `make nightly` the rest."""

from collections.abc import Sequence
from typing import Any

import pytest


def a_few(cases: Sequence[Any], *, of_each: int) -> list[Any]:
    """Return cases of which the first of so many runs by day, and the others at night."""
    return [
        case if number % of_each == 0 else pytest.param(case, marks=pytest.mark.nightly)
        for number, case in enumerate(cases)
    ]
