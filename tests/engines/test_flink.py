"""Tasks on Flink: slots, processes, errors."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from pipelines.execute.runner import Runner
from shards.errors import UserError
from tests.pipelines import duties
from tests.pipelines.duties import read_events

pytestmark = [
    # Beam's Python leaves files and threads behind when it ends.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


def run(folder: Path, flags: Sequence[str], *tasks: duties.Task) -> None:
    with Runner(flags, num_workers=0) as runner:
        runner.run(tasks, duties.prepare, folder)


@pytest.mark.parametrize(
    "flags", ["job_server", pytest.param("session", marks=pytest.mark.nightly)]
)
def test_both_slots_work_at_once_each_in_a_process_of_its_own(
    request: pytest.FixtureRequest, tmp_path: Path, flags: str
) -> None:
    tasks = [(name, "starts:2") for name in "abcdef"]
    run(tmp_path, request.getfixturevalue(flags), *tasks)
    pids = [pid for event, _, pid in read_events(tmp_path) if event == "end"]
    assert len(pids) == 6
    assert len(set(pids)) == 2


def test_a_process_that_serves_two_slots_does_one_task_at_a_time(
    job_server: Sequence[str], tmp_path: Path
) -> None:
    flags = [*job_server, "--sdk_worker_parallelism=1"]
    run(tmp_path, flags, *((name, "sleep:0.2") for name in "abcdef"))
    events = [event for event, _, _ in read_events(tmp_path) if event != "prepare"]
    assert events == ["start", "end"] * 6


def test_a_user_error_comes_through_flink_word_for_word(
    job_server: Sequence[str], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"^mend x: 请改$"):
        run(tmp_path, job_server, ("x", "raise:user"))


def test_any_other_failure_is_reported_in_a_paragraph(
    job_server: Sequence[str], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"^the runner failed: .*x is broken.* Look at its own log"):
        run(tmp_path, job_server, ("x", "raise:other"))
