import sys
from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.corpus.code import code_hash
from pipelines.filters.filter_spec import parse_filter
from pipelines.filters.step import PENDING_REASON
from pipelines.filters.user_filter import UserFilter, load_filters
from shards.errors import UserError
from tests.pipelines.filters.batches import CHINESE, ENGLISH, batch, check_same_rows

MODULE = """
import numpy as np

def long_ones(batch):
    return ["long" if len(text) > 50 else None for text in batch["text"].to_pylist()]

class Halved:
    metrics = ("chars", "never")
    changes_text = True
    def __init__(self, model="", least="1"):
        self.least = int(least)
    def __call__(self, batch):
        texts = batch["text"].to_pylist()
        return {
            "text": [t[:len(t) // 2] if len(t) > self.least else t for t in texts],
            "chars": np.array([len(t) for t in texts]),
            "reason": ["odd" if len(t) % 2 else None for t in texts],
        }

def columns(batch):
    return {"reason": [",".join(batch.schema.names)] * batch.num_rows}

class Measured:
    metrics = ("chars",)
    bounds = {"min_chars": 3.0, "max_chars": 100.0}
    def __call__(self, batch):
        return {"chars": [len(text) for text in batch["text"].to_pylist()]}

class Misnamed(Measured):
    bounds = {"least": 3.0}

class Both(Measured):
    def __call__(self, batch):
        return {"reason": ["x"] * batch.num_rows}

def fewer(batch): return [None]
def truths(batch): return [True] * batch.num_rows
def one_word(batch): return "bad"
def unnamed(batch): return {"x": [1.0] * batch.num_rows}
def texts(batch): return {"text": batch["text"]}
def blank(batch): return np.where([False] * batch.num_rows, "long", "")
def breaks(batch): return 1 / 0

class Nulls:
    changes_text = True
    said = None
    def __call__(self, batch):
        return {"text": [self.said] * batch.num_rows}

class Numbers(Nulls):
    said = 3

class Halves(Nulls):
    said = "a\\ud800"

class NoBound(Measured):
    bounds = {"min_chars": None}

class ListOfBounds(Measured):
    bounds = ["min_chars"]

class OneMetric(Measured):
    metrics = 5
def nothing(batch): return None
def leaves(batch): raise SystemExit(3)
"""


@pytest.fixture
def name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_steps_here.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_steps_here", raising=False)
    return "own_steps_here"


def own(name: str, rest: str) -> UserFilter:
    return UserFilter(parse_filter(f"{name}:{rest}"))


def test_a_function_gives_reasons(name: str) -> None:
    rows = batch(CHINESE, ENGLISH)
    verdict = own(name, "long_ones")(rows)
    check_same_rows(verdict, rows)
    assert verdict.reasons.to_pylist() == [None, "long_ones:long"]
    assert verdict.batch.schema == rows.schema


def test_a_class_may_change_texts_and_measure(name: str) -> None:
    halved = own(name, "Halved?least=2")
    verdict = halved(batch("abcd", "x", "abc"))
    assert verdict.batch["text"].to_pylist() == ["ab", "x", "a"]
    assert verdict.batch["Halved.chars"].to_pylist() == [4.0, 1.0, 3.0]
    assert verdict.batch["Halved.never"].to_pylist() == [None] * 3
    assert verdict.batch["Halved.changed"].to_pylist() == [1, 0, 1]
    assert verdict.reasons.to_pylist() == [None, "Halved:odd", "Halved:odd"]
    added = {field.name: field.type for field in halved.fields}
    assert {column: verdict.batch[column].type for column in added} == added
    empty = halved(batch())
    assert empty.batch.schema == verdict.batch.schema


def test_a_text_that_a_filter_empties_goes(name: str) -> None:
    verdict = own(name, "Halved?least=0")(batch("x", "abcd"))
    assert verdict.reasons.to_pylist() == ["Halved:odd", None]
    verdict = own(name, "Halved?least=-1")(batch("ab", "  "))
    assert verdict.reasons.to_pylist() == [None, "empty"]


def test_a_filter_sees_what_is_known_but_no_marks(name: str) -> None:
    rows = batch(CHINESE).append_column(PENDING_REASON, pa.nulls(1, pa.string()))
    (seen,) = own(name, "columns")(rows).reasons.to_pylist()
    assert "text" in seen
    assert PENDING_REASON not in seen


@pytest.mark.parametrize(
    ("filter_name", "said"),
    [
        ("nothing", r"returned None for a batch of 2 texts.*is there a `return`"),
        ("leaves", "SystemExit: 3"),
        ("fewer", "returned 1 reasons for 2 texts"),
        ("truths", "returned True: it returns, for each text, None to keep it"),
        ("one_word", "returned 'bad': it returns, for each text"),
        ("blank", "returned '': it returns, for each text, None .* a string that is not empty"),
        ("Nulls", "returned None as a text: it returns, for each text, a string"),
        ("Numbers", "returned 3 as a text"),
        ("Halves", r"returned 'a\\ud800' as a text"),
        ("unnamed", "returned x, which its `metrics` does not name"),
        ("texts", "a class that changes them says so with `changes_text = True`"),
        ("breaks", r"ZeroDivisionError: division by zero \(.*own_steps_here.py:\d+\)"),
    ],
)
def test_a_wrong_answer_is_told(name: str, filter_name: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        own(name, filter_name)(batch(CHINESE, ENGLISH))


def test_its_identity_is_its_code_its_options_and_its_files(name: str, tmp_path: Path) -> None:
    model = tmp_path / "model.bin"
    model.write_bytes(b"one")
    plain, with_model = own(name, "Halved"), own(name, f"Halved?model={model}")
    assert plain.identity == f"quality={name}:Halved"
    assert plain.code == with_model.code
    assert str(model) not in with_model.identity
    model.write_bytes(b"two")
    assert own(name, f"Halved?model={model}").engines != with_model.engines
    assert own(name, f"Halved?model={model}").identity != with_model.identity
    (path,) = tmp_path.glob("own_steps_here.py")
    path.write_text(MODULE + "\n")
    code_hash.cache_clear()
    assert own(name, "Halved").code != plain.code


def test_two_filters_of_one_name_are_refused(name: str) -> None:
    spec = parse_filter(f"{name}:long_ones")
    with pytest.raises(UserError, match="two filters are called 'long_ones'"):
        load_filters([spec, spec])


def test_bounds_drop_by_metrics_alone(name: str) -> None:
    rows = batch("ab", "abcd", "abcdef").append_column(
        "language", pa.array(["en", "en", "zh"]).dictionary_encode()
    )
    measured = own(name, "Measured?max_chars=5")
    assert measured.bounds == {"min_chars": 3.0, "max_chars": 5.0}
    assert measured.fact["bounds"] == measured.bounds
    verdict = measured(rows)
    reasons = ["Measured-low-chars", None, "Measured-high-chars"]
    assert verdict.reasons.to_pylist() == reasons
    assert verdict.batch["Measured.chars"].to_pylist() == [2.0, 4.0, 6.0]
    marked = rows.append_column(PENDING_REASON, pa.array([None, "earlier", None], pa.string()))
    assert measured(marked).reasons.to_pylist() == [reasons[0], "earlier", reasons[2]]
    measured.defers_drops = True
    passed = measured(marked)
    assert passed.reasons.null_count == 3
    assert passed.batch[PENDING_REASON].to_pylist() == [reasons[0], "earlier", reasons[2]]
    assert passed.batch.schema == measured(marked.slice(0, 0)).batch.schema


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("Measured?max_chars=many", "max_chars=many is no number"),
        ("clean={}:Measured", "has bounds .*stands after quality"),
        (
            "Misnamed",
            r"has bounds \(least\): each is min_ or max_ and one of its metrics \(chars\)",
        ),
        ("Both", "has bounds and returned a reason"),
    ],
)
def test_wrong_bounds_are_told(name: str, spec: str, said: str) -> None:
    text = spec.format(name) if "{}" in spec else f"{name}:{spec}"
    with pytest.raises(UserError, match=said):
        UserFilter(parse_filter(text))(batch("ab").append_column("language", pa.array(["en"])))


@pytest.mark.parametrize("taken", ["clean", "gopher", "classifier"])
def test_a_name_that_is_taken_is_refused(name: str, taken: str) -> None:
    with pytest.raises(UserError, match=f"a filter cannot be called '{taken}'"):
        load_filters([parse_filter(f"{name}:{taken}")])


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("NoBound", "its `bounds` has None for 'min_chars': give a finite number"),
        ("ListOfBounds", r"its `bounds` is \['min_chars'\], not a dict"),
        ("OneMetric", "its `metrics` is 5, not a list of names"),
        ("Measured?min_chars=inf", "min_chars=inf is not finite"),
    ],
)
def test_what_a_class_says_of_itself_is_checked(name: str, rest: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        own(name, rest)


def test_a_long_option_is_no_path(name: str) -> None:
    pattern = "a" * 300
    assert pattern in own(name, f"Halved?model={pattern}").identity
