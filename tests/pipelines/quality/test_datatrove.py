"""Profiles named after datatrove keep and drop what its own filters do, for the same reason."""

import importlib
import io
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import zstandard

from pipelines.quality import Judgement, Quality
from pipelines.quality.gopher import CHINESE_STOP_WORDS
from pipelines.quality.punctuation import PUNCTUATION, TERMINAL
from pipelines.quality.verdict import first_broken
from tests.pipelines.quality.texts import TEXTS

DATA = Path(__file__).parents[4] / "shared" / "data"
# Warnings are those of the libraries that datatrove imports.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

GOPHER = {
    "gopher_short_doc": "few-words",
    "gopher_long_doc": "many-words",
    "gopher_below_avg_threshold": "short-words",
    "gopher_above_avg_threshold": "long-words",
    "gopher_too_many_hashes": "hashes",
    "gopher_too_many_ellipsis": "ellipses",
    "gopher_too_many_bullets": "bullet-lines",
    "gopher_too_many_end_ellipsis": "ellipsis-lines",
    "gopher_below_alpha_threshold": "few-alphabetic-words",
    "gopher_enough_stop_words": "few-stop-words",
}
REPETITION = {
    "dup_para_frac": "duplicate-paragraphs",
    "dup_para_char_frac": "duplicate-paragraph-chars",
    "dup_line_frac": "duplicate-lines",
    "dup_line_char_frac": "duplicate-line-chars",
    **{f"top_{n}_gram": f"top-{n}gram" for n in (2, 3, 4)},
    **{f"duplicated_{n}_n_grams": f"duplicate-{n}gram" for n in range(5, 11)},
}
FINEWEB = {
    "line_punct_ratio": "few-punctuated-lines",
    "short_line_ratio": "short-lines",
    "char_dup_ratio": "duplicate-line-chars",
    "list_ratio": "newlines",
}
C4 = {
    "too_few_sentences": "few-sentences",
    "lorem_ipsum": "lorem-ipsum",
    "curly_bracket": "curly-brackets",
}
MANDARIN = "cmn_Hani"


def jsonl(path: Path, num: int) -> Iterator[str]:
    raw = path.open("rb")
    stream = zstandard.ZstdDecompressor().stream_reader(raw) if path.suffix == ".zst" else raw
    with io.TextIOWrapper(stream, encoding="utf-8") as lines:  # type: ignore[arg-type, type-var]  both read
        for line in itertools.islice(lines, num):
            yield json.loads(line)["text"]


def english() -> Iterator[str]:
    yield from jsonl(DATA / "bench" / "en.jsonl.zst", 200)
    # Whole articles and plays: their beginnings will do.
    for name in ("00.jsonl.zst", "01.jsonl"):
        for text in jsonl(DATA / "corpora" / "pile" / name, 30):
            yield text[:3000]
    table = pq.read_table(DATA / "corpora" / "fineweb" / "000_00000.parquet")
    for text in table["text"].to_pylist()[:40]:
        yield text[:3000]


def chinese() -> Iterator[str]:
    yield from jsonl(DATA / "bench" / "zh.jsonl.zst", 200)
    for path in sorted((DATA / "corpora" / "wudao").glob("part-*.json")):
        found = json.loads(path.read_bytes())
        records = found["RECORDS"] if isinstance(found, dict) else found
        yield from (record["content"] for record in records[:50])


@pytest.fixture(scope="module")
def real() -> dict[str, list[str]]:
    if not DATA.is_dir():
        pytest.skip(f"no texts to compare on: {DATA} is not there")
    return {"en": [*english()], "zh": [*chinese()]}


def datatrove(module: str) -> Any:
    # It takes seconds to import, which a run without slow tests need not.
    return importlib.import_module(f"datatrove.{module}")


def gopher(**options: Any) -> Any:
    return datatrove("pipeline.filters").GopherQualityFilter(**options)


def repetition(**options: Any) -> Any:
    return datatrove("pipeline.filters").GopherRepetitionFilter(**options)


def c4(**options: Any) -> Any:
    return datatrove("pipeline.filters").C4QualityFilter(**options)


def fineweb(**options: Any) -> Any:
    return datatrove("pipeline.filters").FineWebQualityFilter(**options)


Filter = tuple[Any, str, dict[str, str]]
"""A filter of datatrove, the family of ours, and our reasons by theirs."""


def fineweb2() -> list[Filter]:
    ngrams = {5: 0.198, 6: 0.182, 7: 0.167, 8: 0.154, 9: 0.14, 10: 0.127}
    return [
        (
            repetition(
                language=MANDARIN,
                dup_para_frac=0,
                dup_line_char_frac=0,
                dup_para_char_frac=0,
                dup_line_frac=0.287,
                top_n_grams=((2, 0.256), (3, 0.201), (4, 0.171)),
                dup_n_grams=tuple(ngrams.items()),
            ),
            "fineweb2-zh",
            REPETITION,
        ),
        (
            fineweb(
                language=MANDARIN,
                short_line_thr=999,
                char_duplicates_ratio=0.1,
                line_punct_thr=0.106,
                new_line_ratio=0.178,
            ),
            "fineweb2-zh",
            FINEWEB,
        ),
        (
            gopher(
                language=MANDARIN,
                min_avg_word_length=1,
                max_avg_word_length=5,
                max_non_alpha_words_ratio=0.735,
                stop_words=sorted(CHINESE_STOP_WORDS),
            ),
            "fineweb2-zh",
            GOPHER,
        ),
    ]


def theirs(filters: Sequence[Filter], text: str) -> tuple[str | None, str]:
    """The reason of the first filter that drops a text, and the text as it is then."""
    document = datatrove("data").Document(text=text, id="0")
    for each, family, names in filters:
        answer = each.filter(document)
        if answer is not True:
            return f"{family}-{names[answer[1]]}", document.text
    return None, document.text


def reasons(quality: Quality, judgement: Judgement, *, language: str, profile: str) -> list[Any]:
    """The verdicts of one of several profiles."""
    rules = [rule for rule in quality.rules(language) if rule.profile == profile]
    broken = first_broken(rules, judgement.metrics)
    return [None if index < 0 else rules[index].reason for index in broken]


def same(ours: str | None, wanted: str | None) -> bool:
    # datatrove names the first line of a page that tells, here it is the first rule.
    either = {"c4-lorem-ipsum", "c4-curly-brackets"}
    return ours == wanted or {ours, wanted} == either


# c4 comes last: it alone changes the text.
ENGLISH: dict[str, Callable[[], list[Filter]]] = {
    "gopher-repetition@datatrove": lambda: [(repetition(), "gopher-repetition", REPETITION)],
    "gopher@datatrove": lambda: [(gopher(), "gopher", GOPHER)],
    "fineweb@code": lambda: [(fineweb(), "fineweb", FINEWEB)],
    "c4@datatrove": lambda: [(c4(), "c4", C4)],
}
CHINESE: dict[str, Callable[[], list[Filter]]] = {
    "gopher-repetition@datatrove": lambda: [
        (repetition(language=MANDARIN), "gopher-repetition", REPETITION)
    ],
    "fineweb@code": lambda: [(fineweb(language=MANDARIN), "fineweb", FINEWEB)],
    "fineweb2-zh@datatrove": fineweb2,
}


@pytest.mark.parametrize(("language", "profiles"), [("en", ENGLISH), ("zh", CHINESE)])
def test_verdicts_are_those_of_datatrove(
    real: dict[str, list[str]], language: str, profiles: dict[str, Callable[[], list[Filter]]]
) -> None:
    # Texts without words, which datatrove divides by, do not come through the stages before.
    texts = real[language] + [text for text in TEXTS if text.strip()]
    quality = Quality.parse((f"{language}={'+'.join(profiles)}",))
    judgement = quality.judge(texts, [language] * len(texts))
    filters = {name: build() for name, build in profiles.items()}
    ours = {name: reasons(quality, judgement, language=language, profile=name) for name in profiles}
    for index, text in enumerate(texts):
        # By text, so that datatrove, which keeps the words of five texts, splits each once.
        for name in profiles:
            wanted, left = theirs(filters[name], text)
            assert same(ours[name][index], wanted), (name, text)
            if wanted is None and name.startswith("c4"):
                assert judgement.texts[index] == left
    for name in profiles:
        assert len(set(ours[name])) > 3, name


def test_the_whole_of_fineweb(real: dict[str, list[str]]) -> None:
    texts = real["en"][::4]
    spec = "en=gopher-repetition@datatrove+gopher@datatrove+c4@fineweb+fineweb@code"
    judgement = Quality.parse((spec,)).judge(texts, ["en"] * len(texts))
    recipe = [
        (repetition(), "gopher-repetition", REPETITION),
        (gopher(), "gopher", GOPHER),
        (c4(filter_no_terminal_punct=False), "c4", C4),
        (fineweb(), "fineweb", FINEWEB),
    ]
    for index, text in enumerate(texts):
        wanted, left = theirs(recipe, text)
        assert same(judgement.reasons[index], wanted), text
        assert wanted or judgement.texts[index] == left
    assert 0 < judgement.reasons.count(None) < len(texts)


def test_sets_of_characters_are_those_of_datatrove() -> None:
    theirs = datatrove("utils.text")
    assert theirs.TERMINAL_PUNCTUATION == TERMINAL
    assert set(PUNCTUATION) == theirs.PUNCTUATION_SET
