import json
import sys
from contextlib import closing
from pathlib import Path

import pytest

from shards.commands.output import visible
from trainer.log import NAME, TRAIN, VALIDATION, RunLog, read_run_log
from trainer.metrics import SpeedMeter, StepResult


def write(folder: Path, *steps: int, after: int = 0) -> None:
    with closing(RunLog(folder, step=after, steps=9, show=False)) as log:
        for step in steps:
            log.write(TRAIN, step, {"loss": 7 - step / 2, "loss/web": float(step), "lr": 1e-4})


def test_steps_that_come_again_are_not_doubled(tmp_path: Path) -> None:
    write(tmp_path, 1, 2, 3, 4)
    with (tmp_path / NAME).open("a") as file:
        file.write('{"event": "train", "st')  # as if the power was cut here
    write(tmp_path, 3, 4, 5, after=2)
    assert [line["step"] for line in read_run_log(tmp_path)] == [1, 2, 3, 4, 5]
    # Lines that are kept do not change, not even in the last digit of a loss.
    assert (tmp_path / NAME).read_text().splitlines()[0] == json.dumps(
        {"event": "train", "step": 1, "loss": 6.5, "loss/web": 1.0, "lr": 1e-4}
    )

    # Nothing is lost: a second file keeps the events that are repeated.
    again = (tmp_path / f"{NAME}.1").read_text().splitlines()
    assert [json.loads(line)["step"] for line in again] == [3, 4]


@pytest.mark.parametrize("then", ["from the start", "later"])
def test_files_of_tensorboard_that_cannot_be_written_cost_tensorboard_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    board = tmp_path / "tensorboard"
    if then == "from the start":
        board.write_text("")
    log = RunLog(tmp_path, step=0, steps=9, show=False)
    if then == "later":
        gfile = "tensorboard.compat.tensorflow_stub.io.gfile.GFile"

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(f"{gfile}.flush", full)
    for step in (1, 2):
        log.write(TRAIN, step, {"loss": 1.0})
    log.close()
    assert [line["step"] for line in read_run_log(tmp_path)] == [1, 2]
    assert caplog.text.count(f"files in {board} cannot be written") == 1


def test_a_name_that_acts_is_exact_in_the_log_and_visible_elsewhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "loss/a\u2028\x1b[2J\x85\u202e中\ud800"
    log = RunLog(tmp_path, step=0, steps=9, show=True)
    log.write(TRAIN, 1, {name: 1.0})
    log.show("\x1b\n")
    log.close()
    assert read_run_log(tmp_path) == [{"event": "train", "step": 1, name: 1.0}]
    assert (tmp_path / NAME).read_text("utf-8").count("\n") == 1
    assert visible((tmp_path / NAME).read_text("utf-8")) == (tmp_path / NAME).read_text("utf-8")
    (board,) = (tmp_path / "tensorboard").iterdir()
    assert f"train/{visible(name)}".encode() in board.read_bytes()
    assert capsys.readouterr().err.endswith("\n␛␊\n")


def test_a_progress_bar_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    log = RunLog(None, step=3, steps=10, show=True)
    log.advance(7)
    log.write(VALIDATION, 7, {"loss": 1.0})
    log.close()
    shown = capsys.readouterr().err
    assert "7/10" in shown
    assert "validation  loss 1.0000" in shown


def test_without_tensorboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    write(tmp_path, 1)
    assert "pip install tensorboard" in caplog.text
    assert len(read_run_log(tmp_path)) == 1


def test_meter(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])
    meter = SpeedMeter()
    now[0] += 5
    meter.pause(1)
    for _ in range(2):
        meter.add(
            StepResult(
                loss=1.0,
                num_tokens=400,
                num_samples=4,
                applied=True,
                grad_norm=1.0,
                flops=1e9,
                waited=0.2,
            )
        )
    assert meter.read(peak_flops=1e9) == pytest.approx(
        {
            "ms_per_step": 2000,
            "tokens_per_second": 200,
            "samples_per_second": 2,
            "waiting": 0.1,
            "mfu": 0.5,
        }
    )
    now[0] += 1
    assert meter.read(peak_flops=None) == {
        "ms_per_step": 1000,
        "tokens_per_second": 0,
        "samples_per_second": 0,
        "waiting": 0,
    }


def test_a_terminal_that_nobody_reads_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = RunLog(tmp_path, step=0, steps=9, show=True)

    def broken(_: str) -> int:
        raise BrokenPipeError

    monkeypatch.setattr(sys.stderr, "write", broken)
    log.write(TRAIN, 1, {"loss": 1.0})
    log.close()
    assert [line["step"] for line in read_run_log(tmp_path)] == [1]
