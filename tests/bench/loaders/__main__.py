"""One loader in a process of its own: `python -m tests.bench.loaders NAME DATASET` prints JSON."""

import argparse
import importlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch

LENGTH = 2048
BATCH_SIZE = 32
SECONDS = 4.0
MISSING = 3
"""Exit code where the loader's package is not installed."""


def main() -> int:
    """Measure and print; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("dataset", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    try:
        loader = importlib.import_module(f"tests.bench.loaders.{asked.name}")
    except ModuleNotFoundError as error:
        print(error.name)
        return MISSING
    start = time.perf_counter()
    batches = loader.batches(asked.dataset, length=LENGTH, batch_size=BATCH_SIZE)
    next(batches)
    first = time.perf_counter() - start
    print(json.dumps({"first_ms": 1000 * first, **_rates(batches)}))
    return 0


def _rates(batches: Iterator[torch.Tensor]) -> dict[str, float]:
    """Return tokens per second, of wall and of CPU, and the 99th percentile of a batch."""
    spent: list[float] = []
    cpu, start = time.process_time(), time.perf_counter()
    before = start
    for batch in batches:
        assert batch.dtype == torch.int64
        assert batch.shape[0] == BATCH_SIZE
        now = time.perf_counter()
        spent.append(now - before)
        before = now
        if now - start > SECONDS:
            break
    tokens = len(spent) * BATCH_SIZE * LENGTH
    return {
        "per_second": tokens / (before - start),
        "per_cpu_second": tokens / (time.process_time() - cpu),
        "p99_ms": 1000 * sorted(spent)[len(spent) * 99 // 100],
    }


if __name__ == "__main__":
    sys.exit(main())
