"""Flags that go to Beam's runners, and engines that do not answer."""

import os
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from pipelines.corpus.flags import parse
from pipelines.corpus.recipe import SAMPLE
from pipelines.engine import loopback
from pipelines.engine.cluster import check_engine_answers, with_processes
from pipelines.engine.flags import beam_flags, engine_name
from pipelines.engine.loopback import with_own_workers
from pipelines.engine.runner import Runner
from pipelines.run.command import main
from pipelines.wudao import RECIPE, WudaoOptions
from shards.errors import UserError

RUNNERS = {
    "FlinkRunner": ["--flink_master=master:8081", "--parallelism=8", "--flink_submit_uber_jar"],
    "PortableRunner": [
        "--job_endpoint=server:8099",
        "--environment_type=EXTERNAL",
        "--environment_config=localhost:50000",
        "--sdk_worker_parallelism=4",
    ],
    "SparkRunner": ["--spark_master_url=spark://master:7077", "--spark_version", "3"],
    "PrismRunner": ["--prism_location=/opt/prism", "--prism_log_level=error"],
    "DataflowRunner": [
        "--project=p",
        "--region=europe-west4",
        "--temp_location=gs://b/tmp",
        "--sdk_container_image=registry.example/worker:1",
        "--max_num_workers=40",
        "--experiments=use_runner_v2",
        "--job_name=mine",
    ],
}


@pytest.fixture
def listener() -> Iterator[str]:
    """The address of a server that accepts connections."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.parametrize("name", RUNNERS)
def test_a_runners_flags_reach_beam_as_they_are(name: str) -> None:
    runner_flags = [f"--runner={name}", *RUNNERS[name]]
    argv = ["--seed=3", *runner_flags, "--dedup=minhash", "--", "--only_java_knows=7"]
    options, words = parse(WudaoOptions, argv, program="pipelines.wudao", about=RECIPE.about)
    assert options == WudaoOptions(seed=3, dedup="minhash")
    flags = beam_flags(words)
    assert flags == [*runner_flags, "--only_java_knows=7"]
    assert engine_name(flags) == name
    handed = PipelineOptions(with_processes(flags)).get_all_options(retain_unknown_options=True)
    expected = PipelineOptions([*runner_flags, "--only_java_knows=7"]).get_all_options(
        retain_unknown_options=True
    )
    changed = {key for key in handed if handed[key] != expected.get(key)}
    assert changed <= ({"sdk_worker_parallelism"} if name == "FlinkRunner" else set())


@pytest.mark.parametrize("word", ["--sead=3", "--keep-segment", "--runn=DirectRunner", "stray"])
def test_a_flag_that_beam_does_not_know_is_refused(word: str) -> None:
    with pytest.raises(UserError, match=f"unknown flag {word}: .* go after --, as in: -- --"):
        beam_flags(["--runner=FlinkRunner", word, "--", "--only_java_knows=7"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("DirectRuner", r"^--runner DirectRuner: did you mean DirectRunner\? Give one of .*Flink"),
        ("Zork", r"^--runner Zork: give one of .*PrismRunner.*, or MODULE\.CLASS of your own$"),
    ],
)
def test_a_runner_that_beam_does_not_know_is_refused(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        beam_flags([f"--runner={name}"])


@pytest.mark.parametrize("flags", [[], ["--runner=DirectRunner"], ["--runner=FnApiRunner"]])
def test_this_machines_own_workers_need_no_engine(flags: list[str]) -> None:
    assert engine_name(flags) == ""
    assert with_processes(flags) == flags


FLINK = ("--runner=FlinkRunner", "--flink_master=m:8081")
PORTABLE = ("--runner=PortableRunner", "--job_endpoint=s:8099")
LOOPBACK = "--environment_type=LOOPBACK"


@pytest.mark.parametrize(
    ("flags", "added"),
    [
        ([*FLINK], [f"--sdk_worker_parallelism={2 * (os.cpu_count() or 1)}"]),
        ([*FLINK, "--parallelism=6"], ["--sdk_worker_parallelism=12"]),
        ([*FLINK, "--parallelism", "6", "--sdk_worker_parallelism", "2"], []),
        ([*PORTABLE, "--parallelism=2"], ["--sdk_worker_parallelism=4"]),
        ([*PORTABLE, LOOPBACK, "--parallelism=1"], ["--sdk_worker_parallelism=2"]),
        (["--runner=SparkRunner"], []),
        (["--runner=PrismRunner", LOOPBACK], []),
    ],
)
def test_each_slot_of_flink_gets_a_process_unless_the_flags_say_otherwise(
    flags: Sequence[str], added: list[str]
) -> None:
    assert with_processes(flags) == [*flags, *added]


def test_environment_loopback_becomes_a_pool_of_this_process_and_others_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A real one leaves threads of gRPC in this process; tests/engines have it.
    monkeypatch.setattr(loopback, "_pool", lambda: ("localhost:7", None))
    flags = [*PORTABLE, LOOPBACK]
    assert with_own_workers(flags, runner="PortableRunner") == [
        *flags,
        "--environment_type=EXTERNAL",
        "--environment_config=localhost:7",
    ]
    for flags, runner in [
        ([*PORTABLE, "--environment_type=DOCKER"], "PortableRunner"),
        ([LOOPBACK], "PrismRunner"),
    ]:
        assert with_own_workers(flags, runner=runner) == flags


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--runner=PortableRunner", "--job_endpoint=127.0.0.1:9"], r"--job_endpoint 127.0.0.1:9 "),
        (["--runner=FlinkRunner", "--flink_master=127.0.0.1:9"], r"--flink_master 127.0.0.1:9 "),
        (["--runner=FlinkRunner", "--flink_master=http://127.0.0.1:9"], r"http://127.0.0.1:9 does"),
        (["--runner=FlinkRunner", "--flink_master=here"], r"\(host or port is missing\)"),
        (["--runner=PortableRunner", "--job_endpoint=host:port"], r"host:port does not answer"),
    ],
)
def test_an_engine_that_does_not_answer_is_reported_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        check_engine_answers(flags)
    argv = [*flags, "--input", str(SAMPLE), "--output", str(tmp_path / "out")]
    argv += ["--tokenizer", f"sentencepiece:{SAMPLE / 'sample.model'}"]
    assert main("pipelines.wudao", argv) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "does not answer" in line
    assert "start it" in line


def test_an_engine_that_answers_passes(listener: str) -> None:
    check_engine_answers(["--runner=PortableRunner", f"--job_endpoint={listener}"])
    check_engine_answers(["--runner=FlinkRunner", f"--flink_master={listener}"])
    check_engine_answers(["--runner=FlinkRunner", f"--flink_master=http://{listener}"])


@pytest.mark.parametrize(
    "flags",
    [
        ["--runner=FlinkRunner"],
        ["--runner=FlinkRunner", "--flink_master=[local]"],
        ["--runner=PortableRunner", "--job_endpoint=embed"],
        ["--runner=DataflowRunner"],
    ],
)
def test_an_engine_that_beam_starts_or_finds_itself_is_not_checked(flags: list[str]) -> None:
    check_engine_answers(flags)
    assert Runner(flags, num_workers=4).num_workers == 0
