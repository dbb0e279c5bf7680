"""Real child processes: each test starts some, and some of these die."""

import os
import re
import signal
import subprocess
import sys
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it has no stubs
import pytest

from pipelines.execute.workers import Workers
from shards.errors import DamageError, UserError
from tests.pipelines import duties
from tests.pipelines.duties import Item, read_events, starts

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]


def run(folder: Path, *items: Item, num_workers: int = 2) -> None:
    with Workers(num_workers, duties.work) as workers:
        workers.run_all(items, os.fsencode(folder))


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_children_find_modules_imported_and_load_neither_beam_nor_pandas(tmp_path: Path) -> None:
    script = """
import sys
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from pipelines.execute.runner import Runner
from pipelines.execute.item import packed
from tests.pipelines import duties
if __name__ == "__main__":
    folder = Path(sys.argv[1])
    with Runner((), num_workers=1, preload=("tests.pipelines.duties",)) as runner:
        runner.run([("a", "nothing")], packed(duties.prepare, folder))
        print(*sorted(runner.call_in_worker(duties.imported, folder)))
        runner.call_in_worker(duties.answer, folder)
    print(*sorted(sys.modules))
"""
    path = tmp_path / "script.py"
    path.write_text(script)
    done = subprocess.run(
        [sys.executable, str(path), str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == f"{tmp_path.name} is odd", "warnings are shown"
    child, driver = map(str.split, done.stdout.splitlines())
    assert "pyarrow" in child
    for modules in (child, driver):
        assert {"apache_beam", "pandas"}.isdisjoint(modules)


@pytest.mark.parametrize(
    ("duty", "error_type", "message"),
    [
        ("raise:user", UserError, "^mend x: 请改$"),
        ("raise:damage", DamageError, "is damaged$"),
        ("raise:closed", UserError, "^this error holds a function$"),
        ("raise:other", RuntimeError, r"(?s)^Traceback .*duties\.py.*ValueError: x is broken"),
        ("raise:memory", MemoryError, "^no more$"),
    ],
)
def test_an_error_of_an_item_is_raised_in_the_driver(
    tmp_path: Path, duty: str, error_type: type[Exception], message: str
) -> None:
    with pytest.raises(error_type, match=message) as raised:
        run(tmp_path, ("x", duty), num_workers=1)
    assert type(raised.value) is error_type
    assert starts(tmp_path, "x") == 1  # an error, unlike a death, is not retried


def test_an_error_ends_the_other_items(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="mend x"):
        run(tmp_path, ("other", "sleep:600"), ("x", "starts:2"), ("x", "raise:user"))
    assert not any(alive(pid) for _, _, pid in read_events(tmp_path))


def test_a_child_that_is_killed_only_costs_its_item(tmp_path: Path) -> None:
    others = [(f"t{number}", "nothing") for number in range(6)]
    run(tmp_path, ("x", "die:SIGKILL*1"), *others)
    assert starts(tmp_path, "x") == 2
    assert [starts(tmp_path, name) for name, _ in others] == [1] * 6
    ends = [name for event, name, _ in read_events(tmp_path) if event == "end"]
    assert sorted(ends) == sorted(["x", *(name for name, _ in others)])


@pytest.mark.parametrize(
    ("death", "cause"),
    [
        ("SIGKILL", "it was killed, most likely for lack of memory"),
        ("exit7", "it exited with code 7"),
    ],
)
def test_after_three_deaths_an_item_is_given_up(tmp_path: Path, death: str, cause: str) -> None:
    item = ("x", f"die:{death}*99")
    message = (
        rf"died 3 times .* while nothing else ran: {cause}\. The item: {re.escape(str(item))}\. "
    )
    with pytest.raises(UserError, match=message + "Finished work is kept"):
        run(tmp_path, item, ("a", "nothing"), ("b", "nothing"))
    assert starts(tmp_path, "x") == 3
    assert [starts(tmp_path, name) for name in "ab"] == [1, 1]


def test_an_item_suspected_twice_runs_alone(tmp_path: Path) -> None:
    others = [(f"t{number}", "sleep:0.1") for number in range(12)]
    run(tmp_path, ("x", "die:SIGKILL*2"), *others, num_workers=3)
    events = [(event, name) for event, name, _ in read_events(tmp_path)]
    first, second, third = (index for index, event in enumerate(events) if event == ("start", "x"))
    assert events[third + 1] == ("end", "x")
    for other, _ in others:
        begun = ("start", other) in events[:third]
        assert begun == (("end", other) in events[:third]), "another item ran at the same time"
    assert len(events) == 2 * 12 + 4
    assert first < second < third


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_children_end_with_their_driver(tmp_path: Path, number: int) -> None:
    """A terminal sends Ctrl-C to all processes, but only the driver reacts."""
    command = [sys.executable, "-m", "tests.pipelines.duties", str(tmp_path)]
    with subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        try:
            duties.wait_for(lambda: len(read_events(tmp_path)) == 2, seconds=30)
            if number == signal.SIGINT:
                os.killpg(process.pid, number)
            else:
                process.kill()
            _, output = process.communicate(timeout=60)
        finally:
            process.kill()
    children = {pid for _, _, pid in read_events(tmp_path)}
    duties.wait_for(lambda: not any(alive(pid) for pid in children))
    assert process.returncode != 0
    assert output.decode().count("KeyboardInterrupt") == (number == signal.SIGINT)


def test_a_worker_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: object) -> None:
        raise EOFError

    monkeypatch.setattr(ForkServerProcess, "start", start)
    with pytest.raises(UserError, match=r"no worker can be started \(EOFError\).*ulimit -v"):
        run(tmp_path, ("x", "nothing"))
