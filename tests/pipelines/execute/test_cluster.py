"""Flags that Beam's runners get, and engines that do not respond."""

import os
from collections.abc import Sequence

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from pipelines.execute.cluster import check_engine_answers, with_defaults
from pipelines.execute.flags import engine_name
from pipelines.execute.runner import Runner
from pipelines.wudao import WudaoOptions

RUNNERS = {
    "FlinkRunner": ["--flink_master=master:8081", "--parallelism=8", "--flink_submit_uber_jar"],
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


@pytest.mark.parametrize("name", RUNNERS)
def test_a_runners_flags_reach_beam_as_they_are(name: str) -> None:
    runner_flags = [f"--runner={name}", *RUNNERS[name]]
    argv = ["--seed=3", *runner_flags, "--dedup=minhash", "--", "--only_java_knows=7"]
    options = WudaoOptions.parse(argv, "python -m pipelines.wudao")
    flags = (*runner_flags, "--only_java_knows=7")
    assert options == WudaoOptions(seed=3, dedup="minhash", beam_args=flags)
    assert engine_name(flags) == name
    handed = PipelineOptions(with_defaults(flags)).get_all_options(retain_unknown_options=True)
    expected = PipelineOptions([*runner_flags, "--only_java_knows=7"]).get_all_options(
        retain_unknown_options=True
    )
    changed = {key for key in handed if handed[key] != expected.get(key)}
    added = {"sdk_worker_parallelism", "environment_cache_millis", "execution_mode_for_batch"}
    assert changed == (added if name == "FlinkRunner" else set())


FLINK = ("--runner=FlinkRunner", "--flink_master=m:8081")
PORTABLE = ("--runner=PortableRunner", "--job_endpoint=s:8099")
LOOPBACK = "--environment_type=LOOPBACK"
CACHE = "--environment_cache_millis=60000"
BATCH = "--execution_mode_for_batch=BATCH_FORCED"


@pytest.mark.parametrize(
    ("flags", "added"),
    [
        ([], []),
        (["--runner=DirectRunner"], []),
        ([*FLINK], [CACHE, BATCH, f"--sdk_worker_parallelism={2 * (os.cpu_count() or 1)}"]),
        ([*FLINK, "--parallelism=6"], [CACHE, BATCH, "--sdk_worker_parallelism=12"]),
        ([*FLINK, "--parallelism", "6", "--sdk_worker_parallelism", "2"], [CACHE, BATCH]),
        ([*PORTABLE, "--parallelism=2", CACHE], [BATCH, "--sdk_worker_parallelism=4"]),
        ([*PORTABLE, LOOPBACK, "--parallelism=1"], [CACHE, BATCH, "--sdk_worker_parallelism=2"]),
        (["--runner=SparkRunner"], [CACHE]),
        (["--runner=PrismRunner", LOOPBACK], []),
    ],
)
def test_flink_and_spark_get_what_a_job_of_stages_needs_unless_the_flags_say_otherwise(
    flags: Sequence[str], added: list[str]
) -> None:
    assert with_defaults(flags) == [*flags, *added]


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
