"""Commands of pipelines that do not run a corpus, and flags of single corpora."""

import io
import json

import pyarrow as pa
import pyarrow.parquet as pq

from tests.refusals.pipelines_own import with_a_line
from tests.refusals.pipelines_quality import rules as profiles
from tests.refusals.refusal import Accepted, no_files, refused
from tests.refusals.setups import (
    PAGES,
    TOKENIZER,
    Setup,
    after_command,
    all_of,
    dataset,
    lines,
    with_file,
    wudao,
)
from tests.refusals.setups_shards import (
    ABSENT,
    cut,
    json_changed,
    missing,
    with_checksum,
    with_manifest,
)

MADE = f"pipelines.wudao --input in {TOKENIZER} --output data"

# Flags of pipelines.pile and pipelines.text.
PILE = (
    "--subsets gml",
    "--allow ArXive",
    "--keep ArXiv",
    "--keep ArXiv=1.01",
    "--keep ArXiv=-0.1",
    "--keep zzzz=0.5",
)
TEXT = (
    "--provenance text",
    "--provenance a=b,a=c",
    "--provenance 1st",
    "--format csv",
    "--clean all",
    "--clean none,repair",
    "--format lines --text-field body",
)

# Flags of pipelines.rethreshold.
rules = after_command(f"{MADE} --quality zh=glm --languages zh", wudao)
several = after_command(f"{MADE} --quality glm", wudao)
RETHRESHOLD = (
    "data --threshold glm.min_words=1",
    "data --threshold gopher.min_words=1",
)

# Flags of pipelines.report.
REPORT = (
    "data --corpus-size much",
    "data --corpus-size 0GB",
)
REPORT_ON = {
    "no report.json": missing("data/report.json"),
    "report.json cut": cut("data/report.json"),
    "report.json without the account": json_changed("data/report.json", "accounting", ABSENT),
}

# Flags of pipelines.look.
LOOK = (
    "",
    "wudoa",
    "empty",
)

# Flags of pipelines.train_tokenizer, on texts of six lines.
SPM = "pipelines.train_tokenizer --corpus text --input in"
TRAIN_TOKENIZER = (
    "--output a.bin --vocab-size 300",
    "--output have.model --vocab-size 300",
    "--output a.model",
    "--output a.model --vocab-size 300 --character-coverage 0.89",
    "--output a.model --vocab-size 299",
    "--output a.model --vocab-size 300 --character-coverage 1.01",
    "--output a.model --vocab-size 300 --corpus wudaoo",
    "--output a.model --vocab-size 300 --corpus wudao",
    "--output a.model --vocab-size 300 --corpus pile --format jsonl",
    "--output a.model --vocab-size 300 --format csv",
    "--output a.model --vocab-size 300 --text-field body",
)
TRAIN_TOKENIZER_ON = (
    "--output a.model --vocab-size 90000",
    "--output a.model --vocab-size 300 --character-coverage 0.97",
)

# Flags of pipelines.train_classifier.
CLASSIFIER = "pipelines.train_classifier --positive good --negative bad"


def sides(number: int) -> Setup:
    """Return a setup that writes two inputs with this number of texts each."""
    good = "".join(json.dumps({"text": f"proof {n} of a theorem"}) + "\n" for n in range(number))
    bad = "".join(json.dumps({"text": f"click {n} and win cash"}) + "\n" for n in range(number))
    return all_of(
        with_file("good/a.jsonl", good),
        with_file("bad/a.jsonl", bad),
        with_file("have.bin"),
        with_file("other.json"),
    )


TRAIN_CLASSIFIER = (
    "--output a.model",
    "--output have.bin",
    "--output a.bin --positive-label cc",
    "--output a.bin --positive-label 'a b'",
    "--output a.bin --learning-rate 0",
    "--output a.bin --learning-rate 10.1",
    "--output a.bin --corpus wudao --text-field body",
)

# Flags of pipelines.cp_wudao, on the bundled sample.
COPY = (
    "",
    "0",
    "1 --seed -1",
    "--documents 3 --output other",
)
COPYING = (
    "--fraction 0",
    "--documents 3 --output taken",
)
copying = all_of(
    wudao,
    with_file("a/b/c"),
    with_file("other/part-9.json", PAGES),
    with_file("taken/part-2026010101.json", PAGES),
)

TEXTS = f"pipelines.text --input in {TOKENIZER} --output data"
judged = after_command(f"{TEXTS} --quality zh=mine:clickbait+glm", profiles)
TABLE = "data/g0001-*/audit/*.parquet"


def other_metric(content: bytes) -> bytes:
    """Return an audit table in which the metric glm.chars is 1 for every text."""
    audit = pq.read_table(io.BytesIO(content))
    index = audit.schema.get_field_index("glm.chars")
    field = audit.schema.field(index)
    written = io.BytesIO()
    values = pa.array([1.0] * len(audit), field.type)
    pq.write_table(audit.set_column(index, field, values), written)
    return written.getvalue()


RETHRESHOLD_ON = {
    "rethreshold: a profile was edited": all_of(judged, with_a_line("mine.py")),
    "rethreshold: a profile is gone": all_of(judged, missing("mine.py")),
    "rethreshold: other metrics": all_of(judged, with_checksum(TABLE, other_metric)),
    "rethreshold: the audit table is none": all_of(judged, with_checksum(TABLE, lambda x: x[:-9])),
    "rethreshold: other profiles were there": all_of(
        several, with_manifest("options.quality", {"profiles": ["gofer"], "bounds": {}})
    ),
    "rethreshold: without quality rules": all_of(several, with_manifest("options.quality", ABSENT)),
}

looking = all_of(wudao, lambda folder: (folder / "empty").mkdir(), with_file("wudao/a.json"))
TABLES = (
    ("pile", "pipelines.pile", no_files, PILE),
    ("text", "pipelines.text", no_files, TEXT),
    ("rethreshold", "pipelines.rethreshold", rules, RETHRESHOLD),
    ("report", "pipelines.report", dataset, REPORT),
    ("look", "pipelines.look", looking, LOOK),
    ("train_tokenizer", SPM, all_of(lines, with_file("have.model")), TRAIN_TOKENIZER),
    ("train_classifier", CLASSIFIER, sides(9), TRAIN_CLASSIFIER),
    ("cp_wudao", "pipelines.cp_wudao", copying, COPY),
)
"""For each table: the prefix of its rows' names, the command, the setup, and the flags."""

ROWS = (
    *(
        refused(f"{name} {x}", f"{command} {x}", setup=setup)
        for name, command, setup, flags in TABLES
        for x in flags
    ),
    *(
        refused(f"report: {x}", "pipelines.report data", setup=all_of(dataset, setup))
        for x, setup in REPORT_ON.items()
    ),
    *(
        refused(
            f"train_tokenizer {x}",
            f"{SPM} {x}",
            setup=lines,
            output_before=r"^pipelines.train_tokenizer: reading \S+/in/part-1.jsonl \(1 of 1\)$",
        )
        for x in TRAIN_TOKENIZER_ON
    ),
    *(
        refused(
            f"cp_wudao {x}",
            f"pipelines.cp_wudao {x}",
            setup=copying,
            output_before=r"^1/4 part-2026010101.json \(0.1 MB\)",
        )
        for x in COPYING
    ),
    refused(
        "cp_wudao: a place that is not known",
        "pipelines.cp_wudao 1 --input 'a/*/../x/part-*.json'",
        setup=all_of(with_file("a/b/c"), with_file("a/x/part-1.json", "[]")),
    ),
    refused(
        "train_tokenizer: no text",
        "pipelines.train_tokenizer --corpus text --input in --output a.model --vocab-size 300",
        setup=with_file("in/a.jsonl", '{"text": ""}\n'),
        output_before="^pipelines.train_tokenizer: reading ",
    ),
    refused(
        "rethreshold: a further language",
        "pipelines.rethreshold data --languages zh,ja",
        setup=several,
    ),
    *(
        refused(name, "pipelines.rethreshold data", setup=setup)
        for name, setup in RETHRESHOLD_ON.items()
    ),
    refused(
        "train_classifier: 19 texts to train on",
        f"{CLASSIFIER} --output a.bin",
        setup=sides(24),
        output_before=r"^pipelines.train_classifier: reading \S+/good/a.jsonl \(1 of 1\)$",
    ),
    Accepted(
        name="train_classifier: 20 texts to train on, at the highest rate",
        command=(
            f"{CLASSIFIER} --output a.bin --epochs 1 --buckets 10 --dimensions 2 --learning-rate 10"
        ),
        setup=sides(25),
        message="a.bin: .* trained on 20 hq .held out: 5., 20 cc .held out: 5.",
    ),
)
