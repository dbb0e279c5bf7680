"""Parametrized cases, of which a few always run, and the rest only in rarer runs."""

from collections.abc import Sequence
from typing import Any

import pytest


def a_few(
    cases: Sequence[Any], *, of_each: int, others: pytest.MarkDecorator = pytest.mark.nightly
) -> list[Any]:
    """Return the cases, marking all except every `of_each`-th one."""
    return [
        case if number % of_each == 0 else pytest.param(case, marks=others)
        for number, case in enumerate(cases)
    ]
