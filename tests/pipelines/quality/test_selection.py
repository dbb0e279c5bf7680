import json

import pytest

from pipelines.quality import QualityRules
from pipelines.quality.selection import Selection, find_warnings, parse_selection, profiles_for
from shards.errors import UserError


def names(selection: Selection, language: str) -> list[str]:
    return [bound.profile.name for bound in profiles_for(selection, language)]


@pytest.mark.parametrize(
    ("profile", "served"),
    [
        ("glm", {"en", "zh", "ja", "fr", "und"}),
        ("gopher", {"en", "zh", "fr", "und"}),
        ("gopher@datatrove", {"en"}),
        ("gopher-repetition", {"en", "zh", "fr", "und"}),
        ("gopher-repetition@datatrove", {"en", "zh"}),
        ("c4", {"en", "fr"}),
        ("c4@fineweb", {"en"}),
        ("fineweb", {"en", "zh", "fr", "und"}),
        ("fineweb@code", {"en", "zh"}),
        ("fineweb2-zh", {"zh"}),
    ],
)
def test_what_every_language_means(profile: str, served: set[str]) -> None:
    languages = {"en", "zh", "ja", "fr", "und"}
    selection = parse_selection((profile,))
    assert {code for code in languages if names(selection, code)} == served
    warned = {code for code in languages if find_warnings(selection, [code])}
    assert warned - {"zh"} == languages - served - {"zh"}


def test_the_description_is_the_same_for_the_same_meaning() -> None:
    one = QualityRules.parse(("zh=fineweb2-zh", "en=gopher+c4"), ("gopher.min_words=30",))
    names = ("en=gopher@paper+c4@paper", "zh=fineweb2-zh@sentences")
    two = QualityRules.parse(names, ("en:gopher.min_words=30.0",))
    assert json.dumps(one.describe()) == json.dumps(two.describe())
    assert one.describe()["en"][0]["bounds"]["min_words"] == 30
    swapped = QualityRules.parse(("zh=fineweb2-zh", "en=c4+gopher"), ("gopher.min_words=30",))
    assert json.dumps(swapped.describe()) != json.dumps(one.describe())
    off = QualityRules.parse(("glm",), ("glm.min_chars=off",)).describe()
    assert json.loads(json.dumps(off, allow_nan=False)) == {
        "*": [{"profile": "glm", "bounds": {"min_chars": None}}]
    }
    assert QualityRules.parse(()).describe() == {}


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UserError, match=r"with spacy, .* install 'corpusmill\[datatrove\]'"):
        QualityRules.parse(("en=gopher@datatrove",))
    with pytest.raises(UserError, match=r"with jieba, .* install 'corpusmill\[pipelines\]'"):
        QualityRules.parse(("zh=fineweb2-zh",))
    QualityRules.parse(("en=gopher",))
