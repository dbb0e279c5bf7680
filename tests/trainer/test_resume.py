"""Real runs of the trainer are killed, stopped and resumed.

Guarantee: After `kill -9` training continues with the same bits, ZeRO 0 to 3, dropout on.
"""

import errno
import random
import re
import shutil
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from shards.__main__ import main
from tests.nightly import a_few
from tests.pipelines.mutations import harmed
from tests.trainer.runs import (
    Trial,
    before_a_file_is_whole,
    events,
    kill_minus_nine,
    losses,
    wait_for_step,
)

pytestmark = pytest.mark.slow

STEPS = 9
FLAGS = (
    *("--batch-size", "8", "--max-steps", str(STEPS), "--lr", "0.01"),
    *("--save-every", "3", "--eval-every", "4", "--log-every", "1"),
)


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return Trial.on_corpus(tmp_path_factory.mktemp("runs"), *FLAGS)


def zero(trial: Trial, stage: int) -> tuple[object, ...]:
    return (*trial.zero(stage), "--micro-batch", 4)


@pytest.mark.parametrize("stage", a_few([1, 0, 2, 3], of_each=4))
def test_killed_and_run_again_is_as_if_it_had_not_been(trial: Trial, stage: int) -> None:
    whole = trial.once(*zero(trial, stage))
    run = trial.folder / f"killed-{stage}"
    running = trial.start(*zero(trial, stage), "--save", run)
    wait_for_step(run, 5, running)
    running.kill()
    assert not (run / "step-9").exists()
    # On a CPU this flag changes no kernel, and a checkpoint resumes with or without the flag.
    again = trial.run(*zero(trial, stage), "--save", run, "--deterministic")
    assert "resumes after step" in again.output()
    assert events(run) == events(whole)
    assert [event["step"] for event in events(run, "train")] == list(range(1, STEPS + 1))
    # Dropout is on, and the model learns: a different dropout seed or a skipped step would show.
    assert len(set(losses(run))) == STEPS
    assert losses(run, "validation")[-1] < losses(run, "validation")[0]


@pytest.mark.parametrize("seed", a_few(range(60), of_each=20))
def test_whatever_its_json_says_a_resume_is_right_or_refused(trial: Trial, seed: int) -> None:
    whole, run = trial.once(*zero(trial, 0)), trial.folder / f"harmed-{seed}"
    rng = random.Random(seed)
    for _ in range(5):
        shutil.copytree(whole, run, ignore=shutil.ignore_patterns("step-6", "step-9", "log.jsonl"))
        harmed_file = run / rng.choice(("step-3/whole-00000.json", "run.json"))
        _, content = harmed(harmed_file.read_bytes(), rng)
        harmed_file.write_bytes(content)
        running = trial.start(*zero(trial, 0), "--save", run, "--max-steps", 4).wait()
        output = running.output()
        assert running.codes() in ([0], [2]), output
        assert "Traceback" not in output
        if running.codes() == [2]:
            assert str(run) in output
        elif "resumes after step 3" in output:
            assert losses(run) == losses(whole)[3:4]
        shutil.rmtree(run)


def kill_before_the_list() -> None:
    """End the process when all files of its checkpoint are on the disk, but their list is not."""
    before_a_file_is_whole(lambda path: kill_minus_nine() if "whole-" in path.name else None)


@pytest.mark.parametrize(
    ("stage", "resume"), [pytest.param(0, "none", marks=pytest.mark.nightly), (2, "auto")]
)
def test_killed_between_the_last_file_and_the_list(trial: Trial, stage: int, resume: str) -> None:
    run = trial.folder / f"first-{stage}"
    flags = (*zero(trial, stage), "--save", run, "--resume", resume)
    running = trial.start(*flags, world=2, prepare=kill_before_the_list)
    assert running.processes[0].wait(60) == -signal.SIGKILL, running.output()
    running.kill()
    assert any((run / "step-3").glob("*.pt"))
    again = trial.run(*flags, world=2).output()
    told = (
        f"{run} contains no usable checkpoint: {run}/step-3 is unfinished; the run starts from the "
    )
    assert (f"{told}beginning\n" in again) is (resume == "auto")
    assert events(run) == events(trial.once(*zero(trial, stage), world=2))


def fill_the_disk(stage: int) -> None:
    """Make the disk full for a file of the second checkpoint, one of the second rank if any."""

    def fill(path: Path) -> None:
        if path.parent.name == "step-6" and ("pp_rank_1" if stage else "mp_rank") in path.name:
            raise OSError(errno.ENOSPC, "by the test")

    before_a_file_is_whole(fill)


@pytest.mark.parametrize("stage", a_few([2, 0, 1, 3], of_each=4))
def test_a_disk_that_is_full_ends_the_run_on_all_ranks(trial: Trial, stage: int) -> None:
    run = trial.folder / f"full-{stage}"
    flags = (*zero(trial, stage), "--save", run)
    running = trial.start(*flags, world=2, prepare=partial(fill_the_disk, stage)).wait(60)
    output = running.output()
    assert running.codes() == [2, 2], output
    assert re.search(
        rf"trainer\.train: rank {int(stage > 0)}: .*step-6 was not saved: no space left on the "
        r"disk that holds .*: make room and run the same command again",
        output,
    )
    assert output.count("was not saved") == 1
    assert "Traceback" not in output
    again = trial.run(*flags, world=2).output()
    assert "step-6 is unfinished" in again
    assert events(run) == events(trial.once(*zero(trial, stage), world=2))


@pytest.mark.parametrize(
    ("at_the_log", "problem"),
    [
        (lambda path: path.symlink_to("/dev/full"), "no space left on the disk that holds .*"),
        (Path.mkdir, ".*: Is a directory: .*"),
    ],
    ids=["full", "a folder"],
)
def test_a_log_that_cannot_be_written_ends_the_run_on_all_ranks(
    trial: Trial, tmp_path: Path, at_the_log: Callable[[Path], None], problem: str
) -> None:
    at_the_log(tmp_path / "log.jsonl")
    running = trial.start("--save", tmp_path, world=2).wait(60)
    output = running.output()
    assert running.codes() == [2, 2], output
    assert len(re.findall(rf"^trainer\.train: rank 0: {problem}$", output, re.MULTILINE)) == 1
    assert "Traceback" not in output


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_leaves(trial: Trial, number: int) -> None:
    run = trial.folder / f"stopped-{number}"
    running = trial.start(*zero(trial, 2), "--save", run, world=2)
    wait_for_step(run, 1, running)
    running.signal(number, 1)  # one rank gets the signal, and all stop
    assert running.wait().codes() == [128 + number] * 2
    assert running.output().count("stopping: this step is finished") == 1
    last = events(run, "train")[-1]["step"]
    assert (run / f"step-{last}" / "whole-00000.json").is_file()
    trial.run(*zero(trial, 2), "--save", run, world=2)
    assert events(run) == events(trial.once(*zero(trial, 2), world=2))


def test_a_damaged_checkpoint_is_left_out(trial: Trial) -> None:
    run = Path(shutil.copytree(trial.once(*zero(trial, 1)), trial.folder / "damaged"))
    (path,) = (run / "step-9").glob("*optim_states.pt")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    next((run / "step-6").glob("mp_rank*")).write_bytes(b"short")
    again = trial.run(*zero(trial, 1), "--save", run)
    assert "optim_states.pt is damaged: its checksum" in again.output()
    assert "model_states.pt is missing or cut short" in again.output()
    assert "resumes after step 3" in again.output()
    assert events(run) == events(trial.once(*zero(trial, 1)))


def in_folder(trial: Trial, name: str) -> Trial:
    """Return a copy of a trial whose runs start in a separate folder."""
    return Trial(trial.folder / name, trial.flags, trial.started)


def test_each_node_has_its_part_of_the_shards(trial: Trial) -> None:
    """One node is cut off and comes back; all nodes save into one folder."""
    nodes = in_folder(trial, "nodes")
    scattered = (*zero(trial, 1), "--scatters", 4)
    for number in range(2):
        here = ("--to", nodes.folder / f"node-{number}" / "disk", "--nodes", "1,1")
        words = ("place", trial.folder / "data", "--scatters", 4, *here, "--node", number)
        assert main([str(word) for word in words]) == 0
    run = nodes.folder / "run"
    flags = (*scattered, "--data", "disk", "--save", run)
    running = nodes.start(*flags, world=2, nodes=True)
    wait_for_step(run, 5, running)
    running.processes[1].kill()
    assert running.wait().codes()[0] not in (0, None)  # the remaining rank notices
    assert not (run / "step-9").exists()
    nodes.run(*flags, world=2, nodes=True)
    assert events(run) == events(trial.once(*scattered, world=2))
    assert len([*(run / "step-9").glob("*optim_states*")]) == 2
    refused = nodes.run(*flags, "--save", "run", world=2, nodes=True, code=2).output()
    assert "--save run is not the folder that rank 0 sees" in refused
    assert not (nodes.folder / "node-0" / "run").exists()


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
@pytest.mark.parametrize("stage", a_few([3, 0, 1], of_each=3))
def test_another_number_of_ranks(trial: Trial, stage: int, before: int, after: int) -> None:
    flags = (*zero(trial, stage), "--dropout", 0)  # dropout masks differ between ranks
    whole = trial.once(*flags)
    run = trial.folder / f"world-{stage}-{before}-{after}"
    trial.run(*flags, "--save", run, "--save-every", 5, "--max-steps", 5, "--decay-steps", STEPS,
              world=before)  # fmt: skip
    output = trial.run(*flags, "--save", run, "--eps", "1.01e-8", world=after).output()
    assert output.count("from step 6 on eps is 1.01e-08; it was 1e-08") == 1
    assert len(losses(run)) == STEPS
    assert losses(run) == pytest.approx(losses(whole), abs=2e-5)
    assert not list(run.glob("*universal*"))
    other = (*zero(trial, (stage + 3) % 4), "--max-steps", STEPS + 1)
    refused = trial.run(*flags, "--save", run, *other, code=2).output()
    assert f"cannot be read at stage {(stage + 3) % 4}" in " ".join(refused.split())


@pytest.mark.parametrize(
    ("saved", "stage", "world"), [(0, 0, 1), (1, 0, 1), (3, 0, 1), (0, 2, 2), (0, 3, 2)]
)
def test_weights_alone(trial: Trial, saved: int, stage: int, world: int) -> None:
    whole = trial.once(*zero(trial, saved))
    flags = (*zero(trial, stage), "--max-steps", 1, "--lr", "1e-9", "--init-from")
    output = trial.run(*flags, whole / "step-9", world=world).output()
    found = re.search(r"validation  loss ([\d.]+)", output)
    assert found is not None, output
    assert float(found[1]) == pytest.approx(losses(whole, "validation")[-1], abs=1e-4)
    if world > 1:
        refused = trial.run(*flags, trial.folder / "none", world=world, code=2).output()
        assert refused.count("there is no checkpoint") == 1
