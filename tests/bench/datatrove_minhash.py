"""datatrove's MinHash deduplication of JSON lines, run by an interpreter that has datatrove.

python tests/bench/datatrove_minhash.py FOLDER OUTPUT: what it removes stands in OUTPUT/removed.
"""

import sys

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import (
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupFilter,
    MinhashDedupSignature,
)
from datatrove.pipeline.dedup.minhash import MinhashConfig
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.hashing import HashConfig


def main() -> None:
    source, output = sys.argv[1:]
    # 14 buckets of 8, 5-grams: FineWeb's. Its usual hash fails with a recent xxhash.
    config = MinhashConfig(hash_config=HashConfig(hash_fc="sha1"))
    reader = JsonlReader(source)
    steps = (
        ("signatures", 1, [reader, MinhashDedupSignature(f"{output}/signatures", config)]),
        (
            "buckets",
            config.num_buckets,
            [MinhashDedupBuckets(f"{output}/signatures", f"{output}/buckets", config=config)],
        ),
        ("clusters", 1, [MinhashDedupCluster(f"{output}/buckets", f"{output}/drops", config)]),
        (
            "filter",
            1,
            [
                reader,
                MinhashDedupFilter(
                    f"{output}/drops",
                    exclusion_writer=JsonlWriter(f"{output}/removed", compression=None),
                ),
            ],
        ),
    )
    for name, tasks, pipeline in steps:
        LocalPipelineExecutor(
            pipeline=pipeline, tasks=tasks, logging_dir=f"{output}/logs-{name}"
        ).run()


if __name__ == "__main__":
    main()
