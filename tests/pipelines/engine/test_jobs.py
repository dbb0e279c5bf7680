import re

import pytest

from pipelines.engine import beam
from pipelines.engine.jobs import named_options

PRISM = ["--runner=PrismRunner"]


def name(flags: list[str], dataset: str = "wudao-2026", phase: str = "map") -> str:
    given = named_options(flags, dataset, phase).view_as(beam.GoogleCloudOptions)
    return str(given.job_name)


@pytest.mark.parametrize("flags", [[], PRISM, ["--runner=FlinkRunner", "--parallelism=2"]])
def test_a_job_is_called_by_dataset_and_phase(flags: list[str]) -> None:
    assert name(flags) == "corpusmill wudao-2026 map"


def test_the_name_that_the_user_gives_comes_first() -> None:
    assert name([*PRISM, "--job_name=mine"]) == "mine"


@pytest.mark.parametrize(
    ("dataset", "expected"),
    [
        ("悟道 2.0", "corpusmill 悟道-2.0 map"),
        ("a\udcff\nb", "corpusmill a-b map"),
    ],
)
def test_any_name_of_a_folder_will_do(dataset: str, expected: str) -> None:
    assert name(PRISM, dataset) == expected


def test_dataflow_takes_only_small_letters_and_no_name_twice() -> None:
    flags = ["--runner=DataflowRunner"]
    names = {name(flags, "WuDao_悟道 " + "x" * 80, "merge") for _ in range(2)}
    assert len(names) == 2
    assert all(re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", given) for given in names)
