"""The datatrove profiles drop the same texts as datatrove's filters, for the same reasons.

Guarantee: The `@datatrove` profiles judge as datatrove's own filters do.
"""

import importlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipelines.quality import QualityResult, QualityRules
from pipelines.quality.characters import PUNCTUATION, TERMINAL
from pipelines.quality.gopher import CHINESE_STOP_WORDS
from pipelines.quality.verdict import first_broken
from tests.golden.corpora import articles
from tests.golden.corpus_chinese import chinese
from tests.golden.corpus_english import english, english_code
from tests.pipelines.quality.texts import TEXTS

# The warnings come from the libraries that datatrove imports.
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


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Texts by language: articles of the sample, small texts, and texts on both sides of bounds."""
    folder = tmp_path_factory.mktemp("texts")
    for write in (english, english_code, chinese):
        write(folder)
    names = {"en": ("english", "code"), "zh": ("chinese",)}
    # Texts without words, by whose number datatrove divides, do not get past the earlier stages.
    small = [text for text in TEXTS if text.strip()]
    return {
        language: [
            *(page["text"][:3000] for page in articles(200, language=language)),
            *(text for name in names[language] for text in written(folder / name)),
            *small,
        ]
        for language in names
    }


def written(folder: Path) -> list[str]:
    (path,) = folder.iterdir()
    return [json.loads(line)["text"] for line in path.read_text("utf-8").splitlines()]


def datatrove(module: str) -> Any:
    # The module takes seconds to import, which a run without slow tests need not do.
    return importlib.import_module(f"datatrove.{module}")


def filter_of(name: str, **options: Any) -> Any:
    return getattr(datatrove("pipeline.filters"), name)(**options)


gopher = partial(filter_of, "GopherQualityFilter")
repetition = partial(filter_of, "GopherRepetitionFilter")
c4 = partial(filter_of, "C4QualityFilter")
fineweb = partial(filter_of, "FineWebQualityFilter")
Filter = tuple[Any, str, dict[str, str]]
"""A filter of datatrove, the family of our profile, and our reason for each of datatrove's."""


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
    """Return the reason of the first filter that drops a text, and the text as it then is."""
    document = datatrove("data").Document(text=text, id="0")
    for each, family, names in filters:
        answer = each.filter(document)
        if answer is not True:
            return f"{family}-{names[answer[1]]}", document.text
    return None, document.text


def reasons(
    quality: QualityRules, judgement: QualityResult, *, language: str, profile: str
) -> list[Any]:
    """Return, for each text, the reason that one of several profiles gives, or None."""
    rules = [rule for rule in quality.rules(language) if rule.profile == profile]
    broken = first_broken(rules, judgement.metrics)
    return [None if index < 0 else rules[index].reason for index in broken]


def same(ours: str | None, wanted: str | None) -> bool:
    # datatrove gives the reason of the first line that breaks a rule, whereas we give that of the
    # first rule.
    either = {"c4-lorem-ipsum", "c4-curly-brackets"}
    return ours == wanted or {ours, wanted} == either


# c4 comes last, because only c4 changes the text.
ENGLISH: dict[str, Callable[[], list[Filter]]] = {
    "gopher-repetition@datatrove": lambda: [(repetition(), "gopher-repetition", REPETITION)],
    "gopher@datatrove": lambda: [(gopher(), "gopher", GOPHER)],
    "fineweb@code": lambda: [(fineweb(), "fineweb", FINEWEB)],
    "c4@datatrove": lambda: [(c4(), "c4", C4)],
}
FINEWEB_C4: dict[str, Callable[[], list[Filter]]] = {
    "c4@fineweb": lambda: [(c4(filter_no_terminal_punct=False), "c4", C4)]
}
CHINESE: dict[str, Callable[[], list[Filter]]] = {
    "gopher-repetition@datatrove": lambda: [
        (repetition(language=MANDARIN), "gopher-repetition", REPETITION)
    ],
    "fineweb@code": lambda: [(fineweb(language=MANDARIN), "fineweb", FINEWEB)],
    "fineweb2-zh@datatrove": fineweb2,
}


@pytest.mark.parametrize(
    ("language", "profiles"), [("en", ENGLISH), ("en", FINEWEB_C4), ("zh", CHINESE)]
)
def test_verdicts_are_those_of_datatrove(
    texts: dict[str, list[str]], language: str, profiles: dict[str, Callable[[], list[Filter]]]
) -> None:
    quality = QualityRules.parse((f"{language}={'+'.join(profiles)}",))
    judgement = quality.judge(texts[language], [language] * len(texts[language]))
    filters = {name: build() for name, build in profiles.items()}
    ours = {name: reasons(quality, judgement, language=language, profile=name) for name in profiles}
    for index, text in enumerate(texts[language]):
        # The outer loop is over texts, so that datatrove, which keeps the words of five texts,
        # splits each text once.
        for name in profiles:
            wanted, left = theirs(filters[name], text)
            assert same(ours[name][index], wanted), (name, text)
            if wanted is None and name.startswith("c4"):
                assert judgement.texts[index] == left
    for name in profiles:
        assert len(set(ours[name])) > 2, name


def test_sets_of_characters_are_those_of_datatrove() -> None:
    theirs = datatrove("utils.text")
    assert theirs.TERMINAL_PUNCTUATION == TERMINAL
    assert PUNCTUATION == theirs.PUNCTUATION_SET
