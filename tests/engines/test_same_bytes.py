"""Every engine builds the same dataset, file by file, with the commands that users run.

Guarantee: The dataset has the same bytes on DirectRunner, Prism, Flink and Spark, in a job server
or a cluster.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.engines.inputs import write
from tests.engines.runs import Run, check_same, completed_run

CORPORA = ("wudao", "pile", "fineweb")
BY_DAY = (
    ("1 worker", "mixed"),
    ("2 workers", "mixed"),
    ("prism", "mixed"),
    ("session", "mixed"),
    ("spark_server", "wudao"),
)
BY_NIGHT = (
    *(("prism", corpus) for corpus in CORPORA),
    ("job_server", "wudao"),
    ("job_server", "mixed"),
    ("spark_session", "mixed"),
)
"""Engines, and the corpora that they read in nightly runs."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("same")


@pytest.fixture(scope="module")
def commands(folder: Path) -> Mapping[str, Sequence[object]]:
    """The module and flags of a run, by corpus; `mixed` has all three corpora as sources."""
    paths = {name: write(name, folder / name) for name in CORPORA}
    single = {
        name: [f"pipelines.{name}", "--input", path, "--split-bytes", "5000", "--shards", "16"]
        for name, path in paths.items()
    }
    named = [word for name, path in paths.items() for word in ("--input", f"{name}={name}:{path}")]
    sizes = ["--split-bytes", "10k", "--shards", "6"]
    return {**single, "mixed": ["pipelines.wudao", *named, *sizes]}


@pytest.fixture(scope="module")
def reference(folder: Path, commands: Mapping[str, Sequence[object]]) -> Callable[[str], Run]:
    """A function that returns the one-process run of a corpus, which it runs on first use."""
    make_dir: dict[str, Run] = {}

    def get(corpus: str) -> Run:
        if corpus not in make_dir:
            module, *flags = commands[corpus]
            make_dir[corpus] = completed_run(str(module), flags, folder / "reference" / corpus)
        return make_dir[corpus]

    return get


@pytest.mark.parametrize(
    "corpus",
    ["mixed", "wudao", *(pytest.param(x, marks=pytest.mark.nightly) for x in ("pile", "fineweb"))],
)
def test_the_reference_has_many_items_and_duplicates(
    reference: Callable[[str], Run], corpus: str
) -> None:
    report = reference(corpus).report()
    assert report["workers"] == 0
    assert report["stages"]["map"]["all"] >= 20
    assert report["stages"]["merge"]["all"] >= 17
    dropped = [source["dropped"] for source in report["accounting"].values()]
    assert sum(reasons.get("near-duplicate", 0) for reasons in dropped) >= 20
    assert sum(reasons.get("duplicate", 0) for reasons in dropped) >= 20


@pytest.fixture
def beam(request: pytest.FixtureRequest) -> Sequence[str]:
    """The flags for the engine that the test's parameter names."""
    local = request.param.partition(" worker")[0]
    return ["--workers", local] if local.isdigit() else request.getfixturevalue(request.param)


@pytest.mark.parametrize(
    ("beam", "corpus"),
    [*BY_DAY, *(pytest.param(*run, marks=pytest.mark.nightly) for run in BY_NIGHT)],
    indirect=["beam"],
)
def test_every_engine_makes_the_same_files(
    reference: Callable[[str], Run],
    commands: Mapping[str, Sequence[object]],
    tmp_path: Path,
    beam: Sequence[str],
    corpus: str,
) -> None:
    expected = reference(corpus)
    module, *flags = commands[corpus]
    run = completed_run(str(module), [*flags, *beam], tmp_path / "out")
    check_same(run, expected)
