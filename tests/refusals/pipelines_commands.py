"""Commands of pipelines besides the runs, and what only one corpus has of flags."""

import json

from tests.refusals.refusal import Accepted, nothing, refused
from tests.refusals.scenes import (
    PAGES,
    TOKENIZER,
    Scene,
    dataset,
    holding,
    left_by,
    lines,
    together,
    wudao,
)
from tests.refusals.scenes_shards import (
    GONE,
    cut,
    json_changed,
    missing,
    sealed,
)

MADE = f"pipelines.wudao --input in {TOKENIZER} --output data"
AUDIT = "data/g0001-*/audit/*.parquet"

# pipelines.pile and pipelines.text.
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

# pipelines.rethreshold.
rules = left_by(f"{MADE} --quality zh=glm --languages zh", wudao)
several = left_by(f"{MADE} --quality glm", wudao)
RETHRESHOLD = (
    "data --threshold glm.min_words=1",
    "data --threshold gopher.min_words=1",
)

# pipelines.report.
REPORT = (
    "data --corpus-size much",
    "data --corpus-size 0GB",
)
REPORT_ON = {
    "no report.json": missing("data/report.json"),
    "report.json cut": cut("data/report.json"),
    "report.json without the account": json_changed("data/report.json", "accounting", GONE),
}

# pipelines.look.
LOOK = (
    "",
    "wudoa",
    "empty",
)

# pipelines.train_tokenizer, on texts of six lines.
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

# pipelines.train_classifier.
CLASSIFIER = "pipelines.train_classifier --positive good --negative bad"


def sides(number: int) -> Scene:
    """Two inputs of a number of texts each."""
    good = "".join(json.dumps({"text": f"proof {n} of a theorem"}) + "\n" for n in range(number))
    bad = "".join(json.dumps({"text": f"click {n} and win cash"}) + "\n" for n in range(number))
    return together(
        holding("good/a.jsonl", good),
        holding("bad/a.jsonl", bad),
        holding("have.bin"),
        holding("other.json"),
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

# pipelines.cp_wudao, on the built-in sample.
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
copying = together(
    wudao,
    holding("a/b/c"),
    holding("other/part-9.json", PAGES),
    holding("taken/part-2026010101.json", PAGES),
)

RETHRESHOLD_ON = {
    "rethreshold: other profiles were there": together(
        several, sealed("options.quality", {"profiles": ["gofer"], "bounds": {}})
    ),
    "rethreshold: without quality rules": together(several, sealed("options.quality", GONE)),
}

looking = together(wudao, lambda folder: (folder / "empty").mkdir(), holding("wudao/a.json"))
TABLES = (
    ("pile", "pipelines.pile", nothing, PILE),
    ("text", "pipelines.text", nothing, TEXT),
    ("rethreshold", "pipelines.rethreshold", rules, RETHRESHOLD),
    ("report", "pipelines.report", dataset, REPORT),
    ("look", "pipelines.look", looking, LOOK),
    ("train_tokenizer", SPM, together(lines, holding("have.model")), TRAIN_TOKENIZER),
    ("train_classifier", CLASSIFIER, sides(9), TRAIN_CLASSIFIER),
    ("cp_wudao", "pipelines.cp_wudao", copying, COPY),
)
"""The start of the names of rows, the command, where it runs, and its flags."""

ROWS = (
    *(
        refused(f"{name} {x}", f"{command} {x}", scene=scene)
        for name, command, scene, flags in TABLES
        for x in flags
    ),
    *(
        refused(f"report: {x}", "pipelines.report data", scene=together(dataset, scene))
        for x, scene in REPORT_ON.items()
    ),
    *(
        refused(
            f"train_tokenizer {x}",
            f"{SPM} {x}",
            scene=lines,
            before=r"^pipelines.train_tokenizer: reading \S+/in/part-1.jsonl \(1 of 1\)$",
        )
        for x in TRAIN_TOKENIZER_ON
    ),
    *(
        refused(
            f"cp_wudao {x}",
            f"pipelines.cp_wudao {x}",
            scene=copying,
            before=r"^1/4 part-2026010101.json \(0.1 MB\)",
        )
        for x in COPYING
    ),
    refused(
        "rethreshold: a further language",
        "pipelines.rethreshold data --languages zh,ja",
        scene=several,
    ),
    *(
        refused(name, "pipelines.rethreshold data", scene=scene)
        for name, scene in RETHRESHOLD_ON.items()
    ),
    refused(
        "train_classifier: 19 texts to train on",
        f"{CLASSIFIER} --output a.bin",
        scene=sides(24),
        before=r"^pipelines.train_classifier: reading \S+/good/a.jsonl \(1 of 1\)$",
    ),
    Accepted(
        name="train_classifier: 20 texts to train on, at the highest rate",
        command=(
            f"{CLASSIFIER} --output a.bin --epochs 1 --buckets 10 --dimensions 2 --learning-rate 10"
        ),
        scene=sides(25),
        says="a.bin: .* trained on 20 hq .held out: 5., 20 cc .held out: 5.",
    ),
)
