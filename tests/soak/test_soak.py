"""The soak finds the faults that tests add, and every kind of case runs."""

import dataclasses
import random
import re
from contextlib import suppress
from pathlib import Path

import pytest

from tests.python import ROOT, python
from tests.soak.__main__ import kind_of
from tests.soak.case import Case, NoDocuments, flags_of
from tests.soak.check import Failure, check_dataset
from tests.soak.dataset import PlainDataset
from tests.soak.files import Row
from tests.soak.kinds import KINDS
from tests.soak.loader import check_reading
from tests.soak.records import RecordResult
from tests.soak.scenario import Scenario, case_random

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scenario, Path]:
    """A scenario, and the folder of the dataset that it gives."""
    for seed in range(20):
        case = Case(random.Random(seed), tmp_path_factory.mktemp("soak"), forked=False)
        scenario = case.scenario(small=True)
        first = scenario.sources[0].inputs[0]
        if (
            sum(bool(row.result.documents) for row in first.rows) < 5
            or scenario.options["sample"] < 1
        ):
            continue
        output = case.folder / "out"
        with suppress(NoDocuments):
            case.succeed(*flags_of(scenario, output=output))
            check_dataset(output, scenario)
            if any(one.key[1] == first.relative for one in PlainDataset(output).stored()):
                return scenario, output
    raise AssertionError("no seed makes such a dataset")


def changed(scenario: Scenario, rows: list[Row]) -> Scenario:
    """Return a scenario in which the first file has these rows."""
    sources = [dataclasses.replace(source) for source in scenario.sources]
    first = sources[0].inputs[0]
    sources[0].inputs = [dataclasses.replace(first, rows=tuple(rows)), *sources[0].inputs[1:]]
    return dataclasses.replace(scenario, sources=sources)


def test_a_missing_or_additional_record_is_found(made: tuple[Scenario, Path]) -> None:
    scenario, output = made
    rows = [*scenario.sources[0].inputs[0].rows]
    with pytest.raises(Failure, match=r"verdicts: 1 differ"):
        check_dataset(output, changed(scenario, rows[:-1]))
    more = dataclasses.replace(rows[-1], position=rows[-1].position + 1)
    with pytest.raises(Failure, match=r"verdicts: 1 differ"):
        check_dataset(output, changed(scenario, [*rows, more]))


def test_another_text_is_found(made: tuple[Scenario, Path]) -> None:
    scenario, output = made
    kept = {stored.key[:3] for stored in PlainDataset(output).stored()}
    first = scenario.sources[0].inputs[0]
    at = next(
        i
        for i, row in enumerate(first.rows)
        if (first.source, first.relative, row.position) in kept
    )
    row = first.rows[at]
    document = dataclasses.replace(row.result.documents[0], text="another text, quite another one")
    rows = [*first.rows]
    rows[at] = Row(row.position, RecordResult((document,), group=row.result.group))
    with pytest.raises(Failure, match=r"bytes of|text of|verdicts"):
        check_dataset(output, changed(scenario, rows))


def test_a_window_with_another_token_is_found(
    made: tuple[Scenario, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, output = made
    check_reading(random.Random(1), output)
    tokens = PlainDataset.tokens

    def other(self: PlainDataset, shard: dict[str, object]) -> object:
        changed = tokens(self, shard).copy()
        changed[-1:] += 1
        return changed

    monkeypatch.setattr(PlainDataset, "tokens", other)
    with pytest.raises(Failure, match=r"windows read once by \d ranks: missing"):
        check_reading(random.Random(1), output)


def test_a_case_is_decided_by_its_seed_and_number(tmp_path: Path) -> None:
    kinds = [kind_of(3, number) for number in range(200)]
    assert kinds == [kind_of(3, number) for number in range(200)]
    assert set(kinds) == set(KINDS)
    made = []
    for name in ("a", "b"):
        case = Case(case_random(3, 17), tmp_path / name)
        scenario = case.scenario()
        words = [word.replace(f"{tmp_path}/{name}", "") for word in scenario.command()]
        made.append((words, [file.path.read_bytes() for file in scenario.inputs]))
    assert made[0] == made[1]


ONE = ("--minutes", "0.001", "--seed", "0", "--jobs", "1")
RARE = ("plain", "engines", "readers")


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.nightly) if kind in RARE else kind for kind in KINDS],
)
def test_a_case_of_a_kind(kind: str, tmp_path: Path) -> None:
    done = python("-m", "tests.soak", *ONE, "--keep", tmp_path, f"--only={kind}", at=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"\n{kind} +([1-9]|\d+ +\d+ +[1-9])", done.stdout), "no case ran"
    assert list(tmp_path.iterdir()) == []
