import re

import pytest

from pipelines.execute import beam
from pipelines.execute.jobs import named_options

PRISM = ["--runner=PrismRunner"]


def name(flags: list[str], dataset: str) -> str:
    given = named_options(flags, dataset).view_as(beam.GoogleCloudOptions)
    return str(given.job_name)


@pytest.mark.parametrize(
    ("flags", "dataset", "expected"),
    [
        ([], "wudao-2026", "corpusmill wudao-2026"),
        (PRISM, "wudao-2026", "corpusmill wudao-2026"),
        (["--runner=FlinkRunner", "--parallelism=2"], "a", "corpusmill a"),
        ([*PRISM, "--job_name=mine"], "wudao-2026", "mine"),
        (PRISM, "悟道 2.0", "corpusmill 悟道-2.0"),
        (PRISM, "a\udcff\nb", "corpusmill a-b"),
    ],
)
def test_a_job_is_called_by_its_user_or_by_dataset(
    flags: list[str], dataset: str, expected: str
) -> None:
    assert name(flags, dataset) == expected


def test_dataflow_takes_only_small_letters_and_no_name_twice() -> None:
    flags = ["--runner=DataflowRunner"]
    names = {name(flags, "WuDao_悟道 " + "x" * 80) for _ in range(2)}
    assert len(names) == 2
    assert all(re.fullmatch(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", given) for given in names)
