import json
from collections.abc import Sequence

import pyarrow as pa
import pytest

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
