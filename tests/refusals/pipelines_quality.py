"""Invalid languages, quality profiles, classifiers and perplexity models."""

import struct
from collections.abc import Mapping
from pathlib import Path

from pipelines.steps.langid import installed_model
from tests.golden.corpus_languages import own_labels
from tests.golden.corpus_models import language_model
from tests.refusals.refusal import after_reading, at_start, refused
from tests.refusals.setups import MODEL, TOKENIZER, Setup, all_of, lines, with_file

RUN = "pipelines.wudao --output out"
TEXT = f"pipelines.text --input in {TOKENIZER} --output out"
RULES = """
from pipelines.quality import NAN, SPACES, Profile, Threshold


def marks(text, bounds):
    return text, (text.text.count("!"), len(text.text))


def profile(family, metrics=("x",), thresholds=(), measure=marks, **more):
    return Profile(family=family, metrics=metrics, thresholds=thresholds, measure=measure, **more)


clickbait = profile("clickbait", ("marks", "chars"), (Threshold("max_marks", 5, "many-marks"),))
same_name = profile("clickbait")
taken = profile("glm")
odd = profile("odd", thresholds=(Threshold("most_x", 1, "x"),))
odd_rule = profile("odd", thresholds=(Threshold("max_x", 1, "Too Many"),))
odd_family = profile("Odd Name")
odd_words = profile("odd", words="jieba")
same_metrics = profile("odd", ("x", "x"))
metric_name = profile("odd", ("X-Y",))
twice = (Threshold("max_x", 1, "x"), Threshold("max_x", 2, "y"))
same_thresholds = profile("odd", thresholds=twice)
wrong = profile("wrong", measure=lambda text, _: 1 / 0)
short = profile("short", measure=lambda text, _: (text, ()))
other = profile("other", measure=lambda text, _: ("x", (1,)))
number = 5


def whole(text):
    return text


def fails(text):
    return 1 / 0


class Broken:
    def __init__(self):
        1 / 0
"""
rules = all_of(lines, with_file("mine.py", RULES))


def lid() -> bytes:
    """Return the bytes of the installed language model."""
    return installed_model().read_bytes()


def model(content: bytes) -> Setup:
    return with_file("own.bin", content)


DIMENSIONS, LOSS, KIND, BUCKETS, LONGEST = 8, 32, 36, 40, 48
LABELS = 72
"""The offsets of these numbers in a fastText model."""


def patched(changes: Mapping[int, int]) -> Setup:
    """Return the setup that writes the language model with changed numbers at some offsets."""

    def fill(folder: Path) -> None:
        content = bytearray(lid())
        for place, number in changes.items():
            struct.pack_into("<i", content, place, number)
        (folder / "own.bin").write_bytes(content)

    return fill


def usable(folder: Path) -> None:
    (folder / "own.bin").write_bytes(lid())


def two_models(folder: Path) -> None:
    usable(folder)
    (folder / "other.bin").write_bytes(lid() + b"")


PIECES = MODEL.read_bytes()
CUTOFFS = "percentile,zh,en,ko\n30,210.5,300,inf\n60,0,nan,9\n"
cutoffs = all_of(language_model, with_file("cutoff.csv", CUTOFFS))

QUALITY = (
    "gofer",
    "english=gopher",
    "en=",
    "gopher+gopher@paper",
    "en=gopher,en=c4",
    "none+gopher",
    "ja=gopher",
    "zh=c4",
    "fr=gopher@datatrove",
    "classifier",
)
THRESHOLDS = (
    "--quality gopher --threshold gopher.min_word=3",
    "--quality gopher --threshold gopher.min_words",
    "--quality gopher --threshold gopher.min_words=many",
    "--quality gopher --threshold classifier.min_hq=0.3",
    "--quality gopher --threshold gopher.min_words=-1",
    "--quality gopher --threshold gopher.min_words=inf",
    "--quality gopher --threshold glm.min_chars=1",
    "--quality en=gopher --threshold zh:gopher.min_words=1",
)
LANGUAGES = (
    "eng",
    "Chinese",
    "zh-CN",
    "zho_Hans",
    "zh,klingon",
)
OWN = (
    "mine:clickbate",
    "yours:x",
    "mine:",
    "mine:number",
    "mine:taken",
    "mine:odd",
    "mine:odd_rule",
    "mine:odd_family",
    "mine:odd_words",
    "mine:same_metrics",
    "mine:metric_name",
    "mine:same_thresholds",
    "en=mine:clickbait,zh=mine:same_name",
    "ja@mine=gopher",
)
MEASURING = (
    "zh@mine:number=gopher",
    "mine:wrong",
    "mine:short",
    "zh@mine:whole=gopher",
)
CLASSIFIERS = (
    "'own.bin>=0.4'",
    "'own.bin:good>=0.4'",
    "'own.bin:en>=1.001'",
    "'own.bin:en>=-0.1'",
    "'own.bin:en>=0.4' --classifier 'own.bin:en>=0.5'",
    "'own.bin:en>=0.4' --classifier 'other.bin:en>=0.5'",
)
BROKEN = {
    "a text": model(b"not a model at all"),
    "of a later version": patched({4: 13}),
    "a tenth": lambda folder: (folder / "own.bin").write_bytes(lid()[: len(lid()) // 10]),
    "a byte more": lambda folder: (folder / "own.bin").write_bytes(lid() + b"\0"),
    "vectors of words": patched({KIND: 1}),
    "of an unknown loss": patched({LOSS: 7}),
    "without labels": patched({LABELS: 0}),
    "n-grams too long": patched({LONGEST: 1 << 20}),
    "without buckets": patched({BUCKETS: 0}),
    "of other dimensions": patched({DIMENSIONS: 17}),
}
PERPLEXITY = (
    "'zh=letters.arpa+letters.model<=0'",
    "'letters.arpa+letters.model<=cutoff.csv:head'",
    "'en=letters.arpa+letters.model<=cutoff.csv:middle'",
    "'zh=letters.arpa+letters.model<=cutoff.csv:middle'",
    "'zh=letters.arpa+letters.model<=cutoff.csv:45'",
    "'zh=cutoff.csv+letters.model<=9'",
    "'zh=letters.arpa+cutoff.csv<=9'",
    "'zh=letters.arpa+letters.model<=9' --perplexity 'zh=letters.arpa+q.model>=1'",
)

AT_ONCE = (
    "--classifier 'own.bin:en>0.4'",
    "--classifier 'no.bin:hq>=0.4'",
    "--perplexity 'zh=one.arpa.bin<=800'",
    "--perplexity 'zh=letters.arpa+none.model'",
)
"""Flags that are refused before the output is created."""

ROWS = (
    *(at_start(f"quality {x}", f"{RUN} --quality {x}") for x in QUALITY),
    *(at_start(f"flags {x}", f"{RUN} {x}") for x in THRESHOLDS),
    *(at_start(f"languages {x}", f"{RUN} --languages {x}") for x in LANGUAGES),
    *(at_start(f"own {x}", f"{RUN} --quality {x}", setup=rules) for x in OWN),
    *(after_reading(f"own {x}", f"{TEXT} --quality {x}", setup=rules) for x in MEASURING),
    *(
        at_start(f"classifier {x}", f"{RUN} --classifier {x}", setup=two_models)
        for x in CLASSIFIERS
    ),
    *(
        at_start(f"classifier {x}", f"{RUN} --classifier 'own.bin:en>=0.4'", setup=setup)
        for x, setup in BROKEN.items()
    ),
    *(
        at_start(
            f"perplexity {x}",
            f"{RUN} --perplexity {x}",
            setup=all_of(cutoffs, with_file("q.model", PIECES)),
            requires="kenlm",
        )
        for x in PERPLEXITY
    ),
    *(
        refused(x, f"{RUN} {x}", setup=all_of(cutoffs, two_models, with_file("q.model", PIECES)))
        for x in AT_ONCE
    ),
    refused("lid: not there", f"{RUN} --lid-model none.bin"),
    at_start(
        "lid: cut off",
        f"{RUN} --lid-model own.bin",
        setup=lambda folder: (folder / "own.bin").write_bytes(lid()[:5000]),
    ),
    at_start("lid: a folder", f"{RUN} --lid-model in", setup=lines),
    at_start(
        "languages of a model of other labels",
        f"{RUN} --lid-model glot.ftz",
        setup=own_labels,
    ),
    at_start(
        "perplexity of one file",
        f"{RUN} --perplexity 'zh=k<=9'",
        setup=with_file("k"),
        requires="kenlm",
    ),
    at_start(
        "perplexity with a folder of cutoffs",
        f"{RUN} --perplexity 'zh=k+k<=in:head'",
        setup=all_of(lines, with_file("k")),
        requires="kenlm",
    ),
)
