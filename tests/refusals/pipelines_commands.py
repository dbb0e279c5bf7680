"""Commands of pipelines besides the runs, and what only one corpus has of flags."""

import json

from tests.refusals.refusal import Accepted, refused
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
REJECTS = "data/g0001-*/rejects/*"

# pipelines.pile and pipelines.text.
PILE = {
    "--recipe gml": (
        "--recipe gml: did you mean glm? Give one of all, glm. python -m pipelines.pile --help"
        " lists every flag"
    ),
    "--allow ArXive": (
        "'ArXive' is not a subset of the Pile: did you mean 'ArXiv'? They are ArXiv, BookCorpus2,"
        " Books3, DM Mathematics, Enron Emails, EuroParl, FreeLaw, Github, Gutenberg (PG-19),"
        " HackerNews, NIH ExPorter, OpenSubtitles, OpenWebText2, PhilPapers, Pile-CC, PubMed"
        " Abstracts, PubMed Central, StackExchange, USPTO Backgrounds, Ubuntu IRC, Wikipedia (en),"
        " YoutubeSubtitles."
    ),
    "--keep ArXiv": (
        "--keep 'ArXiv': expected is NAME=SHARE with a share from 0 to 1, as in ArXiv=0.3"
    ),
    "--keep ArXiv=1.01": (
        "--keep 'ArXiv=1.01': expected is NAME=SHARE with a share from 0 to 1, as in ArXiv=0.3"
    ),
    "--keep ArXiv=-0.1": (
        "--keep 'ArXiv=-0.1': expected is NAME=SHARE with a share from 0 to 1, as in ArXiv=0.3"
    ),
    "--keep zzzz=0.5": "'zzzz' is not a subset of the Pile:…",
}
TEXT = {
    "--provenance text": (
        "--provenance: a column cannot be called 'text', which is taken or invalid; choose"
        " another, as in from_text=FIELD"
    ),
    "--provenance a=b,a=c": (
        "--provenance: a column cannot be called 'a', which is taken or invalid; choose another,"
        " as in from_a=FIELD"
    ),
    "--provenance 1st": (
        "--provenance: a column cannot be called '1st', which is taken or invalid; choose another,"
        " as in from_1st=FIELD"
    ),
    "--format csv": (
        "--format csv: give one of auto, json, jsonl, lines, parquet. python -m pipelines.text"
        " --help lists every flag"
    ),
    "--format lines --text-field body": (
        "--text-field has no meaning with --format lines; leave it out"
    ),
}

# pipelines.rethreshold.
rules = left_by(f"{MADE} --quality zh=glm --languages zh", wudao)
several = left_by(f"{MADE} --quality glm", wudao)
RETHRESHOLD = {
    "": (
        "the following arguments are required: DATASET. python -m pipelines.rethreshold --help"
        " lists every flag"
    ),
    "nowhere": "nowhere does not exist: give a dataset's folder (--output of a pipeline).",
    "in": (
        "in holds no dataset: it has no manifest.json. Give the folder that a pipeline wrote (its"
        " --output), or run one: python -m pipelines.wudao --output DIR"
    ),
    "data --threshold glm.min_words=1": (
        '"glm.min_words=1": glm has no threshold "min_words": did you mean min_chars? There are'
        " min_chars. The run measured zh=glm; other profiles need the texts again."
    ),
    "data --threshold gopher.min_words=1": (
        '"gopher.min_words=1": gopher is not among the quality profiles of any language. The run'
        " measured zh=glm; other profiles need the texts again."
    ),
}

# pipelines.report.
REPORT = {
    "": (
        "the following arguments are required: DATASET. python -m pipelines.report --help lists"
        " every flag"
    ),
    "nowhere": "nowhere does not exist: give a dataset's folder (--output of a pipeline).",
    "in": "in holds no dataset: it has no manifest.json…",
    "data --corpus-size much": (
        "--corpus-size: 'much' is not a whole number from 0 on, as in 300, 20k, 100M or 2G. python"
        " -m pipelines.report --help lists every flag"
    ),
    "data --corpus-size 0GB": (
        "--corpus-size: 0GB is not at least 1. python -m pipelines.report --help lists every flag"
    ),
    "data --corpus-size 1XB": "--corpus-size: '1XB' is not a whole number from 0 on…",
    "data more": (
        "more: belongs to no flag. A value with spaces stands in quotes. python -m"
        " pipelines.report --help lists every flag"
    ),
}
REPORT_ON = {
    "no report.json": (
        missing("data/report.json"),
        (
            "data/report.json is missing, and only it describes the run that made this dataset."
            " Copy it from where the dataset was made; python -m shards stats shows what the"
            " manifest says"
        ),
    ),
    "report.json cut": (
        cut("data/report.json"),
        (
            "data/report.json holds no valid JSON (…): it was changed after it was written."
            " Restore it from a copy, or delete it and rerun the command that made it."
        ),
    ),
    "report.json empty": (
        holding("data/report.json", "{}"),
        (
            "report.json of this dataset was written by an older corpusmill and lacks what the"
            " page shows. Build the dataset again to get one"
        ),
    ),
    "report.json without the account": (
        json_changed("data/report.json", "accounting", GONE),
        (
            "data/report.json does not hold what corpusmill writes (KeyError: 'accounting'): copy"
            " it from where the dataset was made, or build the dataset again."
        ),
    ),
}

# pipelines.look.
LOOK = {
    "": (
        "the following arguments are required: PATH. python -m pipelines.look --help lists every"
        " flag"
    ),
    "wudoa": "The input wudoa does not exist (did you mean wudao?); . holds empty, in, wudao.",
    "empty": "No file in empty matches '*'; empty is empty.",
    "hf:": (
        "The input hf: does not name a dataset of the Hugging Face hub; write"
        " hf:OWNER/NAME[@REVISION][:CONFIG[:SPLIT]], for example"
        " hf:HuggingFaceFW/fineweb-2:cmn_Hani."
    ),
}

# pipelines.train_tokenizer, on texts of six lines.
SPM = "pipelines.train_tokenizer --corpus text --input in"
TRAIN_TOKENIZER = {
    "--output a.bin --vocab-size 300": (
        "--output a.bin: the name of a SentencePiece model has to end in .model."
    ),
    "--output have.model --vocab-size 300": (
        "have.model exists already: remove it or choose another --output."
    ),
    "--output a.model": "the following arguments are required: --vocab-size…",
    "--vocab-size 300": "the following arguments are required: --output…",
    "--output a.model --vocab-size 300 --character-coverage 0.89": (
        "--character-coverage: 0.89 is not between 0.9 and 1…"
    ),
    "--output a.model --vocab-size 299": "--vocab-size: 299 is below 300: 256 pieces are bytes…",
    "--output a.model --vocab-size 300 --character-coverage 1.01": (
        "--character-coverage: 1.01 is not between 0.9 and 1…"
    ),
    "--output a.model --vocab-size 300 --corpus wudaoo": (
        "there is no corpus 'wudaoo' (in --corpus): did you mean wudao? A corpus is one of wudao,"
        " pile, fineweb, text, zhihu, zhidao, baike, cc_news, openwebtext, or a module with a"
        " RECIPE, such as my.notes, that lies in the working directory or is installed"
    ),
}
TRAIN_TOKENIZER_ON = {
    "--output a.model --vocab-size 90000": (
        "SentencePiece cannot make 90000 pieces of this text (Vocabulary size too high (90000)."
        " Please set it to a value <= 424.): give another --vocab-size, more text, or a lower"
        " --character-coverage."
    ),
    "--output a.model --vocab-size 300 --character-coverage 0.97": (
        "SentencePiece cannot make 300 pieces of this text (…): give another --vocab-size, more"
        " text, or a lower --character-coverage."
    ),
}

sayings = holding(
    "in/a.jsonl",
    "".join(
        json.dumps({"text": f"{a} {b} the quick brown {c} jumps over the lazy {d}"}) + "\n"
        for a in ("one", "two", "three", "four")
        for b in ("old", "young", "small")
        for c in ("fox", "cat", "horse")
        for d in ("dog", "goose", "donkey")
    ),
)

# pipelines.train_classifier.
CLASSIFIER = "pipelines.train_classifier --positive good --negative bad"


def sides(number: int) -> Scene:
    """Two inputs of so many texts each."""
    good = "".join(json.dumps({"text": f"proof {n} of a theorem"}) + "\n" for n in range(number))
    bad = "".join(json.dumps({"text": f"click {n} and win cash"}) + "\n" for n in range(number))
    return together(
        holding("good/a.jsonl", good),
        holding("bad/a.jsonl", bad),
        holding("have.bin"),
        holding("other.json"),
    )


TRAIN_CLASSIFIER = {
    "--output a.model": "--output a.model: the name of a fastText model has to end in .bin.",
    "--output have.bin": "have.bin exists already: remove it or choose another --output.",
    "": (
        "the following arguments are required: --output. python -m pipelines.train_classifier"
        " --help lists every flag"
    ),
    "--output a.bin --positive-label cc": "--positive-label and --negative-label are both cc.",
    "--output a.bin --positive-label 'a b'": (
        "--positive-label: 'a b' is no label: letters, digits, _ and - make one…"
    ),
    "--output a.bin --negative-label ''": (
        "--negative-label: '' is no label: letters, digits, _ and - make one…"
    ),
    "--output a.bin --learning-rate 0": "--learning-rate: 0 is not above 0 and at most 10…",
    "--output a.bin --learning-rate 10.1": "--learning-rate: 10.1 is not above 0 and at most 10…",
    "--output a.bin --corpus wudao --text-field body": (
        "--text-field: the corpus wudao knows its field; leave the flag out, or give --corpus text"
    ),
}
TRAIN_CLASSIFIER_ON = {
    "--output a.bin --text-field body": (
        "--positive good: 0 texts to train on and 0 held out; a classifier needs at least 20 and"
        " 1. Give more texts, or another --text-field, --held-out or --sample-bytes"
    ),
    "--output a.bin --held-out 0": (
        "--positive good: 9 texts to train on and 0 held out; a classifier needs at least 20 and 1…"
    ),
}

# pipelines.cp_wudao, on the built-in sample.
COPY = {
    "": (
        "one of the arguments N --documents --fraction is required. python -m pipelines.cp_wudao"
        " --help lists every flag"
    ),
    "0": "argument N: 0 is not at least 1. python -m pipelines.cp_wudao --help lists every flag",
    "x": (
        "argument N: 'x' is not a whole number…. python -m pipelines.cp_wudao --help lists every"
        " flag"
    ),
    "--documents 3 --output other": (
        "other holds part-9.json, which this input does not have; remove it or choose another"
        " --output."
    ),
}
COPYING = {
    "--fraction 0": "None of 531 documents falls into the share; ask for more.",
    "--documents 3 --output taken": (
        "taken/part-2026010101.json already exists and holds other documents; remove the folder or"
        " choose another --output."
    ),
}
copying = together(
    wudao,
    holding("a/b/c"),
    holding("other/part-9.json", PAGES),
    holding("taken/part-2026010101.json", PAGES),
)

ROWS = (
    *(refused(f"pile {x}", f"pipelines.pile {x}", says) for x, says in PILE.items()),
    *(refused(f"text {x}", f"pipelines.text {x}", says) for x, says in TEXT.items()),
    *(
        refused(f"rethreshold {x}", f"pipelines.rethreshold {x}", says, scene=rules)
        for x, says in RETHRESHOLD.items()
    ),
    *(
        refused(f"report {x}", f"pipelines.report {x}", says, scene=dataset)
        for x, says in REPORT.items()
    ),
    *(
        refused(f"report: {x}", "pipelines.report data", says, scene=together(dataset, scene))
        for x, (scene, says) in REPORT_ON.items()
    ),
    *(
        refused(
            f"look {x}",
            f"pipelines.look {x}",
            says,
            scene=together(
                wudao, lambda folder: (folder / "empty").mkdir(), holding("wudao/a.json")
            ),
        )
        for x, says in LOOK.items()
    ),
    *(
        refused(
            f"train_tokenizer {x}", f"{SPM} {x}", says, scene=together(lines, holding("have.model"))
        )
        for x, says in TRAIN_TOKENIZER.items()
    ),
    *(
        refused(f"train_classifier {x}", f"{CLASSIFIER} {x}", says, scene=sides(9))
        for x, says in TRAIN_CLASSIFIER.items()
    ),
    *(
        refused(
            f"train_tokenizer {x}",
            f"{SPM} {x}",
            says,
            scene=lines,
            before=r"^pipelines.train_tokenizer: reading \S+/in/part-1.jsonl \(1 of 1\)$",
        )
        for x, says in TRAIN_TOKENIZER_ON.items()
    ),
    *(
        refused(
            f"train_classifier {x}",
            f"{CLASSIFIER} {x}",
            says,
            scene=sides(9),
            before=r"^pipelines.train_classifier: reading \S+/good/a.jsonl \(1 of 1\)$",
        )
        for x, says in TRAIN_CLASSIFIER_ON.items()
    ),
    *(
        refused(
            f"cp_wudao {x}",
            f"pipelines.cp_wudao {x}",
            says,
            scene=copying,
            before=r"^1/4 part-2026010101.json \(0.1 MB\)",
        )
        for x, says in COPYING.items()
    ),
    *(
        refused(f"cp_wudao {x}", f"pipelines.cp_wudao {x}", says, scene=copying)
        for x, says in COPY.items()
    ),
    refused(
        "rethreshold: a further language",
        "pipelines.rethreshold data --languages zh,ja",
        "--languages: texts in 'ja' were not measured, since the run kept only en, zh, and 1 rules"
        " would judge them. Run the corpus again with that language, on a sample (--sample 1%) to"
        " try it.",
        scene=several,
    ),
    refused(
        "rethreshold: the audit table is cut",
        "pipelines.rethreshold data",
        "data/g0001-…/audit/wudao-00000.parquet is not the file that the manifest names: it has"
        " 4,003 bytes with crc32c …, the manifest says 4,005 with …. It was damaged or replaced…",
        scene=together(several, cut(AUDIT)),
    ),
    refused(
        "rethreshold: other profiles were there",
        "pipelines.rethreshold data",
        '"gofer" is no quality profile: did you mean gopher? There are none, c4, c4@datatrove,'
        " c4@fineweb, c4@paper, fineweb, fineweb2-zh, fineweb2-zh@datatrove,"
        " fineweb2-zh@sentences, fineweb@code, fineweb@paper, glm, gopher, gopher-repetition,"
        " gopher-repetition@datatrove, gopher-repetition@paper, gopher@datatrove, gopher@paper; one"
        " of your own is written MODULE:NAME. The dataset was made by a version whose profiles were"
        " others: build it again.",
        scene=together(several, sealed("options.quality", {"profiles": ["gofer"], "bounds": {}})),
    ),
    refused(
        "rethreshold: without quality rules",
        "pipelines.rethreshold data",
        "The dataset was made by a version without quality rules: build it again.",
        scene=together(several, sealed("options.quality", GONE)),
    ),
    refused(
        "rethreshold: rules of a text",
        "pipelines.rethreshold data",
        "data/manifest.json does not hold what corpusmill writes (TypeError: string indices must"
        " be integers, not 'str'): build the dataset again.",
        scene=together(several, sealed("options.quality", "glm")),
    ),
    Accepted(
        name="rethreshold: windows of one token",
        command="pipelines.rethreshold data --length 1",
        scene=rules,
        says="in the dataset",
        writes=(),
    ),
    Accepted(
        name="rethreshold: a language of the two",
        command="pipelines.rethreshold data --languages zh",
        scene=several,
        says="in the dataset",
        writes=(),
    ),
    Accepted(
        name="train_classifier: rate of 10",
        command=(
            f"{CLASSIFIER} --output a.bin --learning-rate 10 --epochs 1 --buckets 10 --dimensions 2"
        ),
        scene=sides(40),
        says="a.bin: .* trained on",
    ),
    Accepted(
        name="train_tokenizer: 300 pieces, all characters",
        command=f"{SPM} --output a.model --vocab-size 300 --character-coverage 1",
        scene=sayings,
        says="a.model: 300 pieces",
    ),
    refused(
        "train_classifier: 19 texts to train on",
        f"{CLASSIFIER} --output a.bin",
        "--positive good: 19 texts to train on and 5 held out; a classifier needs at least 20 and"
        " 1.…",
        scene=sides(24),
        before=r"^pipelines.train_classifier: reading \S+/good/a.jsonl \(1 of 1\)$",
    ),
    Accepted(
        name="train_classifier: 20 texts to train on",
        command=f"{CLASSIFIER} --output a.bin --epochs 1 --buckets 10 --dimensions 2",
        scene=sides(25),
        says="a.bin: .* trained on 20 hq .held out: 5., 20 cc .held out: 5.",
    ),
)
