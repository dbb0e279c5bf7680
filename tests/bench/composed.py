"""What the same recipe costs as a command and as a pipeline of transforms, in CPU seconds.

    python -m tests.bench.composed --input DIR [--repeat 3]

Each runs in turns in a process of its own, which does all the work; the least of each counts. DIR
is what tests/bench/generate_wudao.py writes.
"""

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pipelines.corpus.recipe import SAMPLE
from pipelines.engine import beam
from pipelines.run import build
from pipelines.run.command import main as main_of
from pipelines.transforms import Clean, IdentifyLanguage, ReadCorpus, Steps, Tokenize, WriteDataset

TOKENIZER = f"sentencepiece:{SAMPLE / 'sample.model'}"
FLAGS = ("--tokenizer", TOKENIZER)
NATIVE = True
"""A command that has as much text begins with native loops."""
WAYS = ("command", "transforms", "steps")


def run_command(path: str, output: str) -> None:
    """Run the recipe as its command does, but in this process, whatever the size of the input."""
    build.num_workers = lambda *_, **__: 0
    assert main_of("pipelines.wudao", ["--input", path, "--output", output, *FLAGS]) == 0


def compose(path: str, output: str, *, at_once: bool) -> None:
    """Run the recipe as a pipeline in this process: transform by transform, or as Steps."""
    pipeline = beam.Pipeline(runner=beam.FnApiRunner())
    read = pipeline | ReadCorpus("wudao", input=path)
    made = [
        Clean(native=NATIVE),
        IdentifyLanguage("zh", "en", native=NATIVE),
        Tokenize(TOKENIZER, native=NATIVE),
    ]
    last, dropped = read, [read]
    for transform in [Steps(*made)] if at_once else made:
        last = last.kept | transform
        dropped.append(last)
    _ = last.kept | WriteDataset(output, tokenizer=TOKENIZER, dropped=dropped)
    pipeline.run().wait_until_finish()


def cpu_seconds(way: str, path: str) -> float:
    """Return the CPU seconds of one run and its children."""
    output = tempfile.mkdtemp()
    command = ["-m", "tests.bench.composed", "--input", path, "--output", output, "--way", way]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    shutil.rmtree(output)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the CPU seconds of each way."""
    parser = argparse.ArgumentParser(description="Measure the same recipe in several ways.")
    parser.add_argument("--input", required=True, help="a folder of WuDao's files")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each")
    parser.add_argument("--output", help="of the one run that --way names")
    parser.add_argument("--way", choices=WAYS)
    asked = parser.parse_args()
    if asked.way == "command":
        run_command(asked.input, asked.output)
        return
    if asked.way:
        compose(asked.input, asked.output, at_once=asked.way == "steps")
        return
    rounds = [[cpu_seconds(way, asked.input) for way in WAYS] for _ in range(asked.repeat)]
    least = [min(seconds) for seconds in zip(*rounds, strict=True)]
    megabytes = sum(path.stat().st_size for path in Path(asked.input).rglob("*.json")) / 1e6
    for way, seconds in zip(WAYS, least, strict=True):
        share = 100 * (seconds / least[0] - 1)
        print(f"{way:10} {seconds:6.1f} CPU s for {megabytes:.0f} MB ({share:+.1f} %)")


if __name__ == "__main__":
    main()
