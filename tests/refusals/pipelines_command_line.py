"""Command lines that are refused before anything is read, and bounds of their values."""

from tests.refusals.refusal import Accepted, refused
from tests.refusals.scenes import TOKENIZER, wudao

HELP = "python -m pipelines.wudao --help lists every flag"
PLAN = f"pipelines.wudao --input in {TOKENIZER} --plan"

UNKNOWN = {
    "--tokeniser x": "unknown flag --tokeniser: did you mean --tokenizer?",
    "--ouput=x --seed x": "unknown flag --ouput: did you mean --output?",
    "--shard_tokens 3M": "unknown flag --shard_tokens: did you mean --shard-tokens?",
    "--Seed 1": "unknown flag --Seed: did you mean --seed?",
    "-o x": "unknown flag -o: here --output DIR, the folder of the dataset.",
    "--num-proc 3": "unknown flag --num-proc: here --workers N.",
    "--seq-length 512": (
        "unknown flag --seq-length: a flag of the trainer: python -m trainer.train --help."
    ),
    "--train-data x --job_endpont=h:1 --frobnicate --runner=PrismRunner -- --zork": (
        "unknown flags: --train-data: here --input PATH --job_endpont: did you mean"
        " --job_endpoint? --frobnicate Beam's Python SDK does not have it either; what only the"
        " runner knows goes behind --, as in: -- --checkpointing_interval=5000."
    ),
}
"""Flags that there are not, and what is said before the way to the help."""

VALUES = {
    "--seed -1": "--seed: '-1' is not a whole number from 0 on, as in 300, 20k, 100M or 2G.",
    "--seed 1Ki": "--seed: '1Ki' is not a whole number from 0 on",
    "--sample 2": (
        "--sample: '2' is not a share: a number from 0 to 1, or 0% to 100%, as in 0.05 or 5%."
    ),
    "--sample 100.01%": "--sample: '100.01%' is not a share",
    "--sample=-0.01": "--sample: '-0.01' is not a share",
    "--sample nan": "--sample: 'nan' is not a share",
    "--workers 0": "--workers: 0 is not at least 1.",
    "--lid-chars all": "--lid-chars: 'all' is not a whole number from 0 on, …, nor auto.",
    "--every 5x": "--every: '5x' is not a length of time, as in 30s, 15m, 1.5h or 2d.",
    "--settle=-1s": "--settle: '-1s' is not a length of time",
    "--until tomorrow": (
        "--until: 'tomorrow' is neither a point in time (2026-12-31T06:00) nor a time from now"
        " (15m, 2h)."
    ),
    "--until 2026-13-01T00:00": "--until: '2026-13-01T00:00' is neither a point in time",
    "--bad-utf8 ignore": "--bad-utf8 ignore: give one of reject, replace.",
    "--dedup minhsh": "--dedup minhsh: did you mean minhash? Give one of none, exact, minhash.",
    "--part 0/2": (
        "--part: '0/2' is no share of at most … (2/4 is the second of four), and not 'merge'."
    ),
    "--part 3/2": "--part: '3/2' is no share of at most",
    "--part 1/2,all": "--part: 'all' is no share of at most",
    "--input": "--input: expected one argument.",
    "--keep-dropped=yes": "--keep-dropped: ignored explicit argument 'yes'.",
}
"""Values that a flag does not take, and what is said before the way to the help."""

TOGETHER = {
    "--validation 0.0501": (
        "--validation 0.0501 holds out more than 5 % of the documents; give at most 0.05"
    ),
    "--languages=": "--languages names no language; give for example zh,en, or all",
    "--rehash": "--rehash and --allow-changed say how to --append: give that as well",
    "--allow-changed": "--rehash and --allow-changed say how to --append: give that as well",
    "--append --overwrite": "a dataset is either replaced (--overwrite) or grows: leave one out",
    "--append --clusters components": (
        "--clusters components joins documents that are already in shards, so a dataset made with"
        " it cannot grow: make it with --clusters local"
    ),
    "--every-tokens 9 --clusters components": "--clusters components joins documents that are",
    "--plan --part 1/2": "--plan estimates whole runs: leave --part out",
    "--plan --append": (
        "--plan estimates whole runs: leave --append, --every-tokens and --watch out"
    ),
    "--part 1/2 --append": (
        "--part is for a dataset that is made at once: leave it out, or leave --append,"
        " --every-tokens and --watch out"
    ),
    "--input in": (
        "--tokenizer is missing: give sentencepiece:FILE.model, tiktoken:NAME or"
        " hf:tokenizer.json. To train one on this text: python -m pipelines.train_tokenizer"
        " --input in --vocab-size 50000 --output tokenizer.model"
    ),
    "in": (
        "unknown flag in: neither this command nor Beam's Python SDK has it. Flags that only the"
        " runner knows go after --, as in: -- --checkpointing_interval=5000"
    ),
    "--runner DirectRuner": (
        "--runner DirectRuner: did you mean DirectRunner? Give one of …Flink…, or MODULE.CLASS of"
        " your own"
    ),
    "--runner=FlinkRunner --flink_master=localhost:1": (
        "--flink_master localhost:1 does not answer (…refused…). It should be the REST address of"
        " Flink's JobManager (HOST:PORT): start it, or give the address where it runs. Nothing was"
        " started; what earlier runs finished is kept"
    ),
    "--runner=FlinkRunner --flink_master=localhost": (
        "--flink_master localhost does not answer (host or port is missing)"
    ),
    "--runner=PortableRunner --job_endpoint=localhost:1": (
        "--job_endpoint localhost:1 does not answer …It should be a job server of Beam (HOST:PORT)"
    ),
}
"""Flags that contradict each other, or what is there."""

MISSING = ("pile", "text")
"""Modules that have no sample."""

AT_BOUNDS = (
    "--validation 0 --sample 1 --language-threshold 0 --minhash-threshold 0 --dedup minhash"
    " --workers 1 --split-bytes 1 --shard-tokens 1 --shards 0 --min-chars 0 --lid-chars 0"
    " --max-reject-rate 0 --seed 0 --clusters components --languages zh --every 1.5h --settle 0s",
    "--validation 5% --sample 100% --language-threshold 1 --minhash-threshold 1 --dedup minhash"
    f" --lid-chars auto --max-reject-rate 100% --seed {'9' * 18} --split-bytes 1k"
    " --shard-tokens 2B --languages all --every 123456789s --title always --title-separator ''",
    "--validation 0.05 --seed 2G --dedup none --clusters components",
)
"""Values at a bound, on the side that is taken."""


WUDAO = "pipelines.wudao"

ROWS = (
    *(
        refused(f"unknown {flags}", f"{WUDAO} {flags}", f"{says} {HELP}")
        for flags, says in UNKNOWN.items()
    ),
    *(
        refused(f"value {flags}", f"{WUDAO} {flags}", f"{says}… {HELP}")
        for flags, says in VALUES.items()
    ),
    *(
        refused(f"together {flags}", f"{WUDAO} {flags}", f"{says}…", scene=wudao)
        for flags, says in TOGETHER.items()
    ),
    *(
        refused(
            f"no input of {corpus}",
            f"pipelines.{corpus}",
            f"--input is missing: name the files of {corpus}, a folder, a glob or a URL. (python -m"
            " pipelines.wudao runs on a built-in sample.)",
        )
        for corpus in MISSING
    ),
    *(
        Accepted(
            name=f"bound {flags}",
            command=f"{PLAN} {flags}",
            scene=wudao,
            says="documents",
            writes=(),
        )
        for flags in AT_BOUNDS
    ),
)
