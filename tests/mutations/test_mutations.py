import ctypes
import os
from collections import Counter
from pathlib import Path

import pytest

from shards.errors import UserError
from tests.mutations.__main__ import main
from tests.mutations.cases import Cases
from tests.mutations.mutation import KINDS
from tests.mutations.sandbox import FINE, MEMORY_BYTES, run_cases
from tests.mutations.victim import Victim, make_victim

GROUPS = (
    ("vocabulary", "removals"),
    (".arrow",),
    (".bin", ".idx"),
    ("signatures", "audit", "rejects", "dropped"),
    ("manifest.json", "inputs.json", "report.json"),
)


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Victim:
    return make_victim(tmp_path_factory.mktemp("victim"))


def test_every_kind_of_file_is_mutated(victim: Victim) -> None:
    assert sorted(victim.files()) == sorted(kind for group in GROUPS for kind in group)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("group", "mutations", "count"),
    [*((group, KINDS, 60) for group in GROUPS), (("manifest.json",), ("value",), 150)],
)
def test_a_mutation_is_told_or_harmless(
    victim: Victim, group: tuple[str, ...], mutations: tuple[str, ...], count: int, tmp_path: Path
) -> None:
    cases = Cases(victim, seed=1, folder=tmp_path / "runs", kinds=group, mutations=mutations)
    outcomes = cases.outcomes(range(count))
    assert [(str(cases.case(each.case)), each.said) for each in outcomes if each.what != FINE] == []
    assert len(outcomes) == count
    assert Counter(each.code for each in outcomes)[2] > 0


@pytest.mark.nightly
def test_many_mutations(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--mutations", "1000", "--seed", "2"])
    assert code == 0, capsys.readouterr().out


def test_deaths_are_laid_to_the_case_that_died(tmp_path: Path) -> None:
    def run(case: int) -> int:
        if case == 3:
            ctypes.string_at(0)
        if case == 4:
            os.abort()
        if case == 5:
            return len(bytearray(2 * MEMORY_BYTES)) * 0
        if case == 6:
            raise UserError("it is damaged")
        if case == 7:
            return 77
        (tmp_path / f"{case}").touch()
        return 0

    outcomes = list(run_cases(range(1, 9), run))
    assert [(each.case, each.what, each.code) for each in outcomes] == [
        (1, FINE, 0),
        (2, FINE, 0),
        (3, "SIGSEGV", 0),
        (4, "SIGABRT", 0),
        (5, "MemoryError in run", 0),
        (6, FINE, 2),
        (7, "exit code 77", 77),
        (8, FINE, 0),
    ]
    assert outcomes[5].said == "it is damaged"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2", "8"]
