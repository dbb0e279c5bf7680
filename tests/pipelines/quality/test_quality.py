import json
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.quality import Judgement, Quality
from shards.errors import UserError
from tests.pipelines.quality.texts import TEXTS

SPECS = ("gopher-repetition+gopher+c4+fineweb", "zh=fineweb2-zh+glm", "de=none")
CYCLE = ["en", "zh", "fr", "de", "ja", "und"]
LANGUAGES = [CYCLE[index % len(CYCLE)] for index in range(6 * len(TEXTS))]
MANY_TEXTS = [text for text in TEXTS for _ in CYCLE]


def table(judgement: Judgement, languages: Sequence[str]) -> pa.Table:
    return pa.table({"language": pa.array(languages), **judgement.metrics})


@pytest.fixture(scope="module")
def judged() -> tuple[Quality, Judgement]:
    quality = Quality.parse(SPECS)
    return quality, quality.judge(MANY_TEXTS, LANGUAGES)


def test_reasons_come_from_metrics_alone(judged: tuple[Quality, Judgement]) -> None:
    quality, judgement = judged
    rows = table(judgement, LANGUAGES)
    assert quality.reasons(rows).to_pylist() == judgement.reasons
    assert len(set(judgement.reasons)) > 8
    assert set(judgement.reasons) - {None} <= set(quality.all_reasons)
    # Chunks, batches, dictionaries, nulls.
    halves = pa.concat_tables([rows.slice(0, 50), rows.slice(50)])
    assert quality.reasons(halves).to_pylist() == judgement.reasons
    assert quality.reasons(rows.to_batches()[0]).to_pylist() == judgement.reasons
    coded = rows.set_column(0, "language", halves["language"].dictionary_encode())
    assert quality.reasons(coded).to_pylist() == judgement.reasons
    nothing = rows.set_column(0, "language", pa.nulls(rows.num_rows, pa.string()))
    assert quality.reasons(nothing).null_count == rows.num_rows
    blank = pa.nulls(rows.num_rows, pa.float32())
    blank_words = rows.set_column(
        rows.schema.get_field_index("gopher.words"), "gopher.words", blank
    )
    assert "gopher-few-words" not in quality.reasons(blank_words).to_pylist()
    assert quality.reasons(rows.slice(0, 0)).to_pylist() == []


RULES = sorted(
    {
        (rule.profile, rule.threshold)
        for language in ("en", "zh")
        for rule in Quality.parse(SPECS).rules(language)
    }
)
BOUNDS = st.sampled_from(["off", "0", "0.05", "0.2", "0.5", "1", "3", "7.5", "40", "1000"])
SOME = [*range(0, len(MANY_TEXTS), 5)]
SOME_TEXTS = [MANY_TEXTS[row] for row in SOME]
SOME_LANGUAGES = [LANGUAGES[row] for row in SOME]


@pytest.mark.slow
@settings(max_examples=12)
@given(st.lists(st.tuples(st.sampled_from(RULES), BOUNDS), max_size=6))
def test_other_bounds_on_the_metrics_are_as_good_as_judging_again(
    judged: tuple[Quality, Judgement], changes: list[tuple[tuple[str, str], str]]
) -> None:
    metrics = {name: column[SOME] for name, column in judged[1].metrics.items()}
    rows = pa.table({"language": SOME_LANGUAGES, **metrics})
    written = [f"{profile}.{threshold}={bound}" for (profile, threshold), bound in changes]
    quality = Quality.parse(SPECS, written)
    again = quality.judge(SOME_TEXTS, SOME_LANGUAGES)
    assert quality.reasons(rows).to_pylist() == again.reasons


def test_the_description_is_the_same_for_the_same_meaning() -> None:
    one = Quality.parse(("zh=fineweb2-zh", "en=gopher+c4"), ("gopher.min_words=30",))
    names = ("en=gopher@paper+c4@paper", "zh=fineweb2-zh@sentences")
    two = Quality.parse(names, ("en:gopher.min_words=30.0",))
    assert json.dumps(one.describe()) == json.dumps(two.describe())
    assert one.describe()["en"][0]["bounds"]["min_words"] == 30
    swapped = Quality.parse(("zh=fineweb2-zh", "en=c4+gopher"), ("gopher.min_words=30",))
    assert json.dumps(swapped.describe()) != json.dumps(one.describe())
    off = Quality.parse(("glm",), ("glm.min_chars=off",)).describe()
    assert json.loads(json.dumps(off, allow_nan=False)) == {
        "*": [{"profile": "glm", "bounds": {"min_chars": None}}]
    }
    assert Quality.parse(()).describe() == {}


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UserError, match=r"with spacy, .* install 'corpusmill\[datatrove\]'"):
        Quality.parse(("en=gopher@datatrove",))
    with pytest.raises(UserError, match=r"with jieba, .* install 'corpusmill\[pipelines\]'"):
        Quality.parse(("zh=fineweb2-zh",))
    Quality.parse(("en=gopher",))
