"""A GLM run's start in a process of its own: `python -m tests.bench.glm_start DATASET [FRACTION]`.

Prints JSON: seconds and memory until the first batches are there, at this fraction of an epoch.
"""

import itertools
import json
import re
import sys
import time
from pathlib import Path

import numpy as np

from shards.order.sampler import Sampler
from shards.order.streams import streams_of
from shards.reader import Dataset
from shards.windows import glm_windows
from trainer.loader import Loader

POSITIONS = 1024
BATCH_SIZE = 32
NUM_BATCHES = 100


def main() -> None:
    """Measure and print."""
    folder, fraction = Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    np.unique(np.arange(2))  # loads what numpy loads late
    before, start = _memory(), time.perf_counter()
    streams = streams_of(Dataset.open(folder))
    sampler = Sampler(streams, seed=1, num_scatters=1, window=glm_windows(POSITIONS))
    loader = Loader(sampler, batch_size=BATCH_SIZE)
    if fraction:
        position = int(fraction * sampler.cells.sizes.sum())
        loader.load_state_dict(sampler.state_dict(position))
    batches = iter(loader)
    next(batches)
    first = time.perf_counter() - start
    for _ in itertools.islice(batches, NUM_BATCHES - 1):
        pass
    seconds, after = time.perf_counter() - start, _memory()
    grown = {name: after[name] - before[name] for name in after}
    print(json.dumps({"first": first, "all": seconds, **grown}))


def _memory() -> dict[str, float]:
    """Return resident MB of this process: its own, and of mapped files."""
    status = Path("/proc/self/status").read_text()
    return {name: int(kb) / 1e3 for name, kb in re.findall(r"Rss(Anon|File):\s+(\d+) kB", status)}


if __name__ == "__main__":
    main()
