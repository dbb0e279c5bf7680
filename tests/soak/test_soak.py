"""The soak finds what is wrong: its oracle, its kinds of cases, its commands."""

import dataclasses
import random
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.soak.__main__ import kind_of
from tests.soak.case import Case, Nothing, flags_of
from tests.soak.check import Failure, check_dataset
from tests.soak.dataset import Plain
from tests.soak.files import Row
from tests.soak.kinds import KINDS
from tests.soak.loader import check_reading
from tests.soak.records import Judged
from tests.soak.world import World, same_seed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[World, Path]:
    """A dataset and its inputs, which agree; documents of the first file are kept."""
    for seed in range(20):
        case = Case(random.Random(seed), tmp_path_factory.mktemp("soak"), forked=False)
        world = case.world(small=True)
        first = world.sources[0].inputs[0]
        if sum(bool(row.judged.documents) for row in first.rows) < 5 or world.options["sample"] < 1:
            continue
        output = case.folder / "out"
        with suppress(Nothing):
            case.succeed(*flags_of(world, output=output))
            check_dataset(output, world)
            if any(one.place[1] == first.relative for one in Plain(output).stored()):
                return world, output
    raise AssertionError("no seed makes such a dataset")


def changed(world: World, rows: list[Row]) -> World:
    """Return a world whose first file has other rows."""
    sources = [dataclasses.replace(source) for source in world.sources]
    first = sources[0].inputs[0]
    sources[0].inputs = [dataclasses.replace(first, rows=tuple(rows)), *sources[0].inputs[1:]]
    return dataclasses.replace(world, sources=sources)


def test_a_record_too_many_or_too_few_is_found(made: tuple[World, Path]) -> None:
    world, output = made
    rows = [*world.sources[0].inputs[0].rows]
    with pytest.raises(Failure, match=r"verdicts: 1 differ"):
        check_dataset(output, changed(world, rows[:-1]))
    more = dataclasses.replace(rows[-1], position=rows[-1].position + 1)
    with pytest.raises(Failure, match=r"verdicts: 1 differ"):
        check_dataset(output, changed(world, [*rows, more]))


def test_another_text_is_found(made: tuple[World, Path]) -> None:
    world, output = made
    kept = {stored.place[:3] for stored in Plain(output).stored()}
    first = world.sources[0].inputs[0]
    at = next(
        i
        for i, row in enumerate(first.rows)
        if (first.source, first.relative, row.position) in kept
    )
    row = first.rows[at]
    document = dataclasses.replace(row.judged.documents[0], text="another text, quite another one")
    rows = [*first.rows]
    rows[at] = Row(row.position, Judged((document,), group=row.judged.group))
    with pytest.raises(Failure, match=r"bytes of|text of|verdicts"):
        check_dataset(output, changed(world, rows))


def test_a_window_that_lacks_a_token_is_found(
    made: tuple[World, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, output = made
    check_reading(random.Random(1), output)
    tokens = Plain.tokens

    def other(self: Plain, shard: dict[str, object]) -> object:
        changed = tokens(self, shard).copy()
        changed[-1:] += 1
        return changed

    monkeypatch.setattr(Plain, "tokens", other)
    with pytest.raises(Failure, match=r"windows read once by \d ranks: missing"):
        check_reading(random.Random(1), output)


def test_a_case_is_decided_by_its_seed_and_number(tmp_path: Path) -> None:
    kinds = [kind_of(3, number) for number in range(200)]
    assert kinds == [kind_of(3, number) for number in range(200)]
    assert set(kinds) == set(KINDS)
    made = []
    for name in ("a", "b"):
        case = Case(same_seed(3, 17), tmp_path / name)
        world = case.world()
        words = [word.replace(f"{tmp_path}/{name}", "") for word in world.command()]
        made.append((words, [file.path.read_bytes() for file in world.inputs]))
    assert made[0] == made[1]


ONE = ("--minutes", "0.001", "--seed", "0", "--jobs", "1")
RARE = ("plain", "engines", "readers")


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=pytest.mark.nightly) if kind in RARE else kind for kind in KINDS],
)
def test_a_case_of_a_kind(kind: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.soak", *ONE, "--keep", tmp_path, f"--only={kind}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"\n{kind} +([1-9]|\d+ +\d+ +[1-9])", done.stdout), "it can be skipped"
    assert list(tmp_path.iterdir()) == []
