"""Damaged at random, a file is refused in one paragraph or costs what is damaged."""

import os
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from pipelines.engine.trial import try_in_child
from shards.errors import UserError
from tests.pipelines.mutations import harmed_bytes
from tests.pipelines.readers.mutations import files, outcome

EACH = int(os.environ.get("MUTATIONS", "50"))
"""How many of each file are tried."""
FINE = {"same", "changed", "damage", "refused"}


@pytest.mark.parametrize("name", [name for name in files() if "a.zip" not in name])
def test_undamaged(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(files()[name])
    expected = "refused" if name.endswith((".arrow", "zipped.jsonl")) else "same"
    assert outcome(tmp_path / name).split()[0] == expected


def tell(path: Path) -> None:
    raise UserError(outcome(path))


@pytest.mark.nightly
def test_no_mutation_ends_a_run_without_words(tmp_path: Path) -> None:
    """No crash, no traceback, and no change in silence where a format shows changes."""
    outcomes = {}
    for name, whole in files().items():
        for harm, content in harmed_bytes(whole, seed=0, number=EACH):
            (tmp_path / name).write_bytes(content)
            with pytest.raises(UserError) as told:
                try_in_child(partial(tell, tmp_path / name), name)
            outcomes[name, harm] = str(told.value)
    counts = Counter(outcome.split()[0] for outcome in outcomes.values())
    worst = {at: told for at, told in outcomes.items() if told.split()[0] not in FINE}
    assert worst == {}
    assert min(counts["damage"], counts["refused"]) > len(outcomes) // 5
