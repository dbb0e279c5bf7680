import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from pipelines.filters import filter_spec
from pipelines.filters.filter_spec import FilterSpec, parse_filter
from shards.errors import UserError

MODULE = """
def no_ads(batch):
    return [None] * batch.num_rows

class Short:
    def __init__(self, least="3"):
        self.least = int(least)
    def __call__(self, batch):
        return ["short" if len(t) < self.least else None for t in batch["text"].to_pylist()]

NUMBER = 3
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_filters_here.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_filters_here", raising=False)
    return "own_filters_here"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rules:ads", FilterSpec(after="quality", module="rules", name="ads", given={})),
        (
            "规则:C?pattern=a+b%20c",  # a plus is a plus, as in regular expressions
            FilterSpec(after="quality", module="规则", name="C", given={"pattern": "a+b c"}),
        ),
        ("clean=a.b:C", FilterSpec(after="clean", module="a.b", name="C", given={})),
        (
            "mask=a:C?path=/m.bin&most=0.3&empty=",
            FilterSpec(
                after="mask",
                module="a",
                name="C",
                given={"path": "/m.bin", "most": "0.3", "empty": ""},
            ),
        ),
    ],
)
def test_a_filter_is_written_as_place_module_name_and_options(
    text: str, expected: FilterSpec
) -> None:
    assert parse_filter(text) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bad=rules:ads", "no step 'bad' for a filter to stand after: .*ive one of read, clean, "),
        ("rules:ads:more", "names no filter. Write"),
        ("rules:ads?a=1&a=2", "gives an option twice"),
        ("toxic", "no installed package offers a filter of that name"),
    ],
)
def test_what_names_no_filter_is_told(text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        parse_filter(text)


def test_an_installed_package_offers_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = EntryPoint(name="toxic", value="some.package:Toxic", group=filter_spec.GROUP)
    monkeypatch.setattr(filter_spec, "entry_points", lambda group: [offered] * (group != ""))
    assert str(parse_filter("toxic?x=1")) == "some.package:Toxic"
    with pytest.raises(UserError, match=r"there are toxic"):
        parse_filter("toxc")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no_such_module_here:x", "there is no module 'no_such_module_here'"),
        ("{}:nope", "holds no 'nope'"),
        ("{}:NUMBER", "it cannot be called"),
        ("{}:no_ads?x=1", "it is a function: make it a class"),
        ("{}:Short?most=1", r"unexpected keyword argument 'most'; it takes \(least='3'\)"),
        ("{}:Short?least=x", r"the filter .*: it cannot be made: ValueError: .*_here.py:7\)"),
    ],
)
def test_a_filter_that_cannot_be_had_is_told(own_module: str, text: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        parse_filter(text.format(own_module)).load()


def test_a_class_gets_the_options(own_module: str) -> None:
    made, bounds = parse_filter(f"{own_module}:Short?least=7").load()
    assert vars(made) == {"least": 7}
    assert not bounds


def test_a_missing_module_of_a_filter_is_not_taken_for_the_filters_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torchrules_here.py").write_text("import torchr\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UserError, match="No module named 'torchr'"):
        parse_filter("torchrules_here:x").load()
