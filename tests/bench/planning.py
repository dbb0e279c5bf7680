"""`--plan` against the run itself, with the output on an S3 server that counts."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pipelines.planning.estimate import Estimate
from pipelines.planning.run import estimate_run
from pipelines.planning.storage import Requests
from pipelines.run.command import completed
from pipelines.wudao import RECIPE
from shards.storage.files import files
from shards.storage.remote import RemotePath
from tests.bench import inputs
from tests.bench.mixture import write_mixture
from tests.bench.table import render
from tests.engines.s3_server import ACCESS, PROGRAM, SECRET, counted, serve_s3

WORKERS = 2
_BUCKET, _NAME = "plan", "out"


def measure(megabytes: int) -> str:
    """Return the table of expected and real figures for some megabytes of text."""
    if not (inputs.REAL_TEXT.exists() and PROGRAM.exists()):
        return "skipped: it takes the real text of ../shared/data/bench, and make engines"
    inputs_given = (f"zh={_corpus(megabytes)}/zh", f"en=text:{_corpus(megabytes)}/en")
    options = completed(RECIPE.options(input=inputs_given, tokenizer=inputs.tokenizer()), RECIPE)
    estimate, _ = estimate_run(
        "pipelines.wudao",
        replace(options, output=RemotePath(f"s3://{_BUCKET}/{_NAME}"), workers=WORKERS),
    )
    folder = inputs.FOLDER / "plan"
    shutil.rmtree(folder, ignore_errors=True)
    log = inputs.FOLDER / "plan.log"
    log.unlink(missing_ok=True)
    with serve_s3(folder, buckets=(_BUCKET,), access_log=log) as address:
        seconds = _run(inputs_given, address)
    table = comparison(estimate, folder / _BUCKET / _NAME, counted(log), seconds=seconds)
    shutil.rmtree(folder)
    return table


def comparison(
    estimate: Estimate, output: Path, asked: Mapping[str, int], *, seconds: float
) -> str:
    """Return the table for a finished run.

    Args:
        estimate: The plan.
        output: The dataset, with its segments.
        asked: Requests that the server counted, by kind.
        seconds: How long the run took.
    """
    report = json.loads((output / "report.json").read_bytes())
    sizes = files(output)
    extent, expected = estimate.extent, sum(estimate.requests.values(), Requests())
    written = Counter[str]()
    for name, size in sizes.items():
        if name.startswith(".work/map/"):
            written["segments"] += 0 if name.endswith(".json") else size
        elif name.endswith((".bin", ".idx", ".arrow")) and "signatures" not in name:
            written["shards"] += size
        elif name.startswith("g0001"):
            written["other"] += size
    account = report["accounting"].values()
    pairs: dict[str, tuple[float, float]] = {
        "splits": (extent.splits, report["tasks"]["map"]["all"]),
        "documents read": (extent.total("records"), sum(source["read"] for source in account)),
        "documents kept": (extent.total("documents"), sum(source["kept"] for source in account)),
        "tokens": (extent.total("tokens"), _tokens(output)),
        "shards": (sum(extent.shards.values()), report["tasks"]["merge"]["all"] - len(account)),
        "bytes of segments": (extent.segment_bytes, written["segments"]),
        "bytes of shards": (extent.shard_bytes, written["shards"]),
        "bytes of audit, rejects, signatures": (extent.other_bytes, written["other"]),
        **{kind.upper(): (getattr(expected, kind), asked[kind]) for kind in asked},
        "requests": (expected.all, sum(asked.values())),
        "seconds": (estimate.all_seconds, seconds),
    }
    rows = [
        [name, f"{plan:,.0f}", f"{run:,.0f}", f"{100 * (plan / max(run, 1) - 1):+.0f} %"]
        for name, (plan, run) in pairs.items()
    ]
    return render(("", "--plan", "the run", "off by"), rows)


def _tokens(output: Path) -> int:
    manifest = json.loads((output / "manifest.json").read_bytes())
    (generation,) = manifest["generations"]
    return sum(
        shard["tokens"]
        for source in generation["sources"].values()
        for shard in (*source["shards"], *source["validation"])
    )


def _corpus(megabytes: int) -> Path:
    folder = inputs.FOLDER / f"mixture-{megabytes}"
    if not folder.exists():
        unfinished = folder.with_name(f"{folder.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        write_mixture(
            unfinished,
            chinese=inputs.REAL_TEXT,
            english=inputs.REAL_TEXT.with_name("en.jsonl.zst"),
            megabytes=megabytes,
        )
        unfinished.rename(folder)
    return folder


def _run(inputs_given: tuple[str, ...], address: str) -> float:
    """Run the command with its output on a server and return the seconds."""
    keys = {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": ACCESS,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    command = [sys.executable, "-m", "pipelines.wudao", "--tokenizer", inputs.tokenizer()]
    command += [flag for text in inputs_given for flag in ("--input", text)]
    command += ["--output", f"s3://{_BUCKET}/{_NAME}", "--workers", str(WORKERS)]
    started = time.monotonic()
    subprocess.run(
        [*command, "--keep-segments"], env={**os.environ, **keys}, cwd=inputs.ROOT, check=True
    )
    return time.monotonic() - started
