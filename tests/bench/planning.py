"""`--plan` against the run itself."""

import json
import shutil
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from pipelines.planning.estimate import Estimate
from pipelines.planning.run import plan
from pipelines.run.command import completed
from pipelines.wudao import RECIPE
from shards.storage.files import files
from tests.bench import inputs
from tests.bench.mixture import write_mixture
from tests.bench.table import render

WORKERS = 2


def measure(megabytes: int) -> str:
    """Return the table of expected and real figures for some megabytes of text."""
    if not inputs.REAL_TEXT.exists():
        return "skipped: it takes the real text of ../shared/data/bench"
    given = (f"zh={_corpus(megabytes)}/zh", f"en=text:{_corpus(megabytes)}/en")
    output = inputs.FOLDER / "plan"
    shutil.rmtree(output, ignore_errors=True)
    options = completed(RECIPE.options(input=given, tokenizer=inputs.tokenizer()), RECIPE)
    expected = plan("pipelines.wudao", replace(options, output=output, workers=WORKERS))
    table = comparison(expected, output, seconds=_run(given, output))
    shutil.rmtree(output)
    return table


def comparison(estimate: Estimate, output: Path, *, seconds: float) -> str:
    """Return the table for a finished run.

    Args:
        estimate: The plan.
        output: The dataset, with its segments.
        seconds: How long the run took.
    """
    report = json.loads((output / "report.json").read_bytes())
    sizes = files(output)
    extent = estimate.extent
    written = Counter[str]()
    for name, size in sizes.items():
        if name.startswith(".work/map/"):
            written["segments"] += 0 if name.endswith(".json") else size
        elif name.startswith("g0001"):
            shard = name.endswith((".bin", ".idx", ".arrow")) and "signatures" not in name
            written["shards" if shard else "other"] += size
    account = report["accounting"].values()
    pairs: dict[str, tuple[float, float]] = {
        "splits": (extent.count("splits"), report["tasks"]["map"]["all"]),
        "documents read": (extent.total("records"), sum(source["read"] for source in account)),
        "documents kept": (extent.total("documents"), sum(source["kept"] for source in account)),
        "tokens": (extent.total("tokens"), _tokens(output)),
        "shards": (extent.count("shards"), report["tasks"]["merge"]["all"] - len(account)),
        "bytes of segments": (extent.total("segment_bytes"), written["segments"]),
        "bytes of shards": (extent.total("shard_bytes"), written["shards"]),
        "bytes of audit, rejects, signatures": (extent.other_bytes, written["other"]),
        "seconds": (estimate.seconds, seconds),
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


def _run(given: tuple[str, ...], output: Path) -> float:
    """Run the command and return the seconds."""
    command = [sys.executable, "-m", "pipelines.wudao", "--tokenizer", inputs.tokenizer()]
    command += [flag for text in given for flag in ("--input", text)]
    command += ["--output", str(output), "--workers", str(WORKERS), "--keep-segments"]
    started = time.monotonic()
    subprocess.run(command, cwd=inputs.ROOT, check=True)
    return time.monotonic() - started
