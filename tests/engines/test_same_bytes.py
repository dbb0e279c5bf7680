"""One dataset, whatever engine made it: the commands as a person runs them, file by file."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.engines.inputs import write_fineweb, write_pile, write_wudao
from tests.engines.runs import Run, check_same, finished

pytestmark = [pytest.mark.engine, pytest.mark.slow]

Tell = Callable[[str, str, Run], None]
CORPORA = {"wudao": write_wudao, "pile": write_pile, "fineweb": write_fineweb}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("same")


@pytest.fixture(scope="module")
def commands(folder: Path) -> Mapping[str, Sequence[object]]:
    """Module and flags of a run by corpus; `mixed` is all three as sources of one run."""
    paths = {name: write(folder / name, documents=600) for name, write in CORPORA.items()}
    single = {
        name: [f"pipelines.{name}", "--input", path, "--split-bytes", "8000", "--shards", "16"]
        for name, path in paths.items()
    }
    named = [word for name, path in paths.items() for word in ("--input", f"{name}={name}:{path}")]
    sizes = ["--split-bytes", "22k", "--shards", "6"]
    return {**single, "mixed": ["pipelines.wudao", *named, *sizes]}


@pytest.fixture(scope="module")
def reference(folder: Path, commands: Mapping[str, Sequence[object]]) -> Callable[[str], Run]:
    """The run of each corpus in one process, made when it is asked for."""
    made: dict[str, Run] = {}

    def get(corpus: str) -> Run:
        if corpus not in made:
            module, *flags = commands[corpus]
            made[corpus] = finished(str(module), flags, folder / "reference" / corpus)
        return made[corpus]

    return get


@pytest.mark.parametrize("corpus", [*CORPORA, "mixed"])
def test_the_reference_is_cut_finely_and_loses_what_repeats(
    reference: Callable[[str], Run], tell: Tell, corpus: str
) -> None:
    run = reference(corpus)
    tell("in this process", corpus, run)
    report = run.report()
    assert report["workers"] == 0
    assert report["tasks"]["map"]["all"] >= 50
    assert report["tasks"]["merge"]["all"] >= 17
    dropped = [each["dropped"] for each in report["accounting"].values()]
    assert sum(each.get("near-duplicate", 0) for each in dropped) >= 20
    assert sum(each.get("duplicate", 0) for each in dropped) >= 20


@pytest.fixture
def beam(request: pytest.FixtureRequest) -> Sequence[str]:
    """The flags that make a run go to the engine of the test's name for it."""
    local = request.param.partition(" worker")[0]
    return ["--workers", local] if local.isdigit() else request.getfixturevalue(request.param)


@pytest.mark.parametrize(
    ("engine", "beam", "corpus"),
    [
        (engine, engine, corpus)
        for engine, corpora in {
            "1 worker": ["mixed"],
            "2 workers": ["mixed"],
            "prism": [*CORPORA, "mixed"],
            "job_server": ["wudao", "mixed"],
            "session": ["mixed"],
        }.items()
        for corpus in corpora
    ],
    indirect=["beam"],
)
def test_every_engine_makes_the_same_files(
    reference: Callable[[str], Run],
    commands: Mapping[str, Sequence[object]],
    tmp_path: Path,
    tell: Tell,
    *,
    engine: str,
    beam: Sequence[str],
    corpus: str,
) -> None:
    expected = reference(corpus)
    module, *flags = commands[corpus]
    run = finished(str(module), [*flags, *beam], tmp_path / "out")
    tell(engine, corpus, run)
    check_same(run, expected)
