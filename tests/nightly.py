"""Cases of one kind, of which every test run has a few and a rarer one the rest."""

from collections.abc import Sequence
from typing import Any

import pytest


def a_few(
    cases: Sequence[Any], *, of_each: int, others: pytest.MarkDecorator = pytest.mark.nightly
) -> list[Any]:
    """Return cases: one in `of_each` has no mark, the others have that of rarer runs."""
    return [
        case if number % of_each == 0 else pytest.param(case, marks=others)
        for number, case in enumerate(cases)
    ]
