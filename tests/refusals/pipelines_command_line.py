"""Command lines that are refused before any file is read, and accepted values at bounds."""

from tests.refusals.refusal import Accepted, refused
from tests.refusals.setups import TOKENIZER, wudao

PLAN = f"pipelines.wudao --input in {TOKENIZER} --plan"

UNKNOWN = (
    "--tokeniser x",
    "--ouput=x --seed x",
    "--shard_tokens 3M",
    "-o x",
    "--num-proc 3",
    "--jsonl-keys text",
    "--seq-length 512",
    "--train-data x --job_endpont=h:1 --frobnicate --runner=PrismRunner -- --zork",
)
"""Flags that do not exist."""

VALUES = (
    f"--seed {'1' * 41}",
    "--seed -1",
    "--sample 100.01%",
    "--sample=-0.01",
    "--sample nan",
    "--workers 0",
    "--lid-chars all",
    "--every 5x",
    "--every 1234567890s",
    "--until 2026-13-01T00:00",
    "--bad-utf8 ignore",
    "--dedup minhsh",
    "--part 0/2",
    "--part 1/1001",
    "--part 3/2",
    "--part 1/2,all",
    "--input",
    "--keep-dropped=yes",
)
"""Flags with invalid values."""

TOGETHER = (
    "--validation 0.0501",
    "--languages=",
    "--rehash",
    "--allow-changed",
    "--append --overwrite",
    "--plan --part 1/2",
    "--plan --append",
    "--part 1/2 --append",
    "--input in",
    "--seed 1 in",
    "--runner DirectRuner",
    "--runner=FlinkRunner --flink_master=localhost:1",
    "--runner=FlinkRunner --flink_master=localhost",
    "--runner=PortableRunner --job_endpoint=localhost:1",
    "--direct_num_workers=2",
)
"""Flags that contradict the input or each other."""

AT_BOUNDS = (
    "--validation 0 --sample 1 --language-threshold 0 --minhash-threshold 0 --dedup minhash"
    " --workers 1 --split-bytes 1 --shard-tokens 1 --shards 0 --min-chars 0 --lid-chars 0"
    " --max-reject-rate 0 --seed 0 --languages zh --every 1.5h --settle 0s",
    "--validation 5% --sample 100% --minhash-threshold 1 --dedup minhash"
    f" --lid-chars auto --max-reject-rate 100% --seed {'9' * 18} --split-bytes 1k"
    " --runner=directrunner --shard-tokens 2B --languages all --every 123456789s"
    " --title always --title-separator ''",
    "--validation 0.05 --seed 2G --dedup none",
)
"""Values at their bounds, which are accepted."""


WUDAO = "pipelines.wudao"

ROWS = (
    *(refused(f"unknown {flags}", f"{WUDAO} {flags}") for flags in UNKNOWN),
    *(refused(f"value {flags}", f"{WUDAO} {flags}") for flags in VALUES),
    *(refused(f"together {flags}", f"{WUDAO} {flags}", setup=wudao) for flags in TOGETHER),
    refused("no input of pile", "pipelines.pile"),
    *(
        Accepted(
            name=f"bound {flags}",
            command=f"{PLAN} {flags}",
            setup=wudao,
            message="documents",
            may_write=(),
        )
        for flags in AT_BOUNDS
    ),
)
