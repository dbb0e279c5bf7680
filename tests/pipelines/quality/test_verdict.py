import numpy as np
import pyarrow as pa
import pytest

from pipelines.quality import Quality
from pipelines.quality.profile import ABOVE, BELOW, Rule
from pipelines.quality.verdict import first_broken, language_codes, metric_columns
from shards.errors import UserError


def rule(metric: str, comparison: str, bound: float) -> Rule:
    return Rule(
        profile="p", metric=metric, comparison=comparison, bound=bound, reason="r", threshold="t"
    )


@pytest.mark.parametrize(
    ("words", "hashes", "broken"),
    [
        (50, 0.1, -1),  # at both bounds
        (49, 0.1, 0),
        (50, 0.2, 1),
        (49, 0.2, 0),  # the first one counts
        (np.nan, 0.2, 1),
        (np.nan, np.nan, -1),
    ],
)
def test_the_first_rule_broken(words: float, hashes: float, broken: int) -> None:
    rules = [rule("words", BELOW, 50), rule("hashes", ABOVE, 0.1), rule("words", BELOW, np.nan)]
    metrics = {"words": np.array([words], np.float32), "hashes": np.array([hashes], np.float32)}
    assert first_broken(rules, metrics).tolist() == [broken]


def test_the_first_rule_of_a_profile() -> None:
    rules = Quality.parse(("gopher",)).rules("en")
    metrics = {rule.metric: np.full(3, np.nan, np.float32) for rule in rules}
    metrics["gopher.words"][:2] = 3, 200_000
    metrics["gopher.hashes"][:] = 1
    assert [rules[index].reason for index in first_broken(rules, metrics)] == [
        "gopher-few-words", "gopher-many-words", "gopher-hashes",
    ]  # fmt: skip


def test_columns_of_a_table() -> None:
    table = pa.table({"language": ["en", None], "a": pa.array([1.5, None], pa.float32())})
    (column,) = metric_columns(table, ["a"]).values()
    assert column.dtype == np.float32
    np.testing.assert_array_equal(column, [1.5, np.nan])
    with pytest.raises(UserError, match=r"no column b: .*need the texts again"):
        metric_columns(table, ["a", "b"])
    with pytest.raises(UserError, match="no column language"):
        metric_columns(table.drop_columns("language"), ["a"])


@pytest.mark.parametrize("coded", [False, True])
def test_languages_as_numbers(coded: bool) -> None:
    column = pa.chunked_array([["en", "zh"], ["zh", None]])
    names, codes = language_codes(column.dictionary_encode() if coded else column)
    assert [names[code] if code >= 0 else None for code in codes] == ["en", "zh", "zh", None]
    assert codes.dtype == np.int32
