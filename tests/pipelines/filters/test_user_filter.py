"""What makes a filter of one's own the same one, and where it may come from."""

from pathlib import Path

import pytest

from pipelines.corpus.code import code_hash
from pipelines.filters.filter_spec import parse_filter
from pipelines.filters.user_filter import UserFilter
from pipelines.quality import Quality
from shards.errors import UserError
from tests.pipelines.own_code import install

MODULE = """
import numpy as np
from pipelines.quality import Profile, Threshold

shouting = Profile(
    family="shouting", metrics=("marks",), thresholds=(Threshold("max_marks", 4, "many"),),
    measure=lambda text, bounds: (text, (text.text.count("!"),)),
)


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
        }
"""


@pytest.fixture
def name(code: Path) -> str:
    (code / "own_steps_here.py").write_text(MODULE)
    return "own_steps_here"


def own(spec: str) -> UserFilter:
    return UserFilter(parse_filter(spec))


def test_its_identity_is_its_code_its_options_and_its_files(
    name: str, code: Path, tmp_path: Path
) -> None:
    model = tmp_path / "model.bin"
    model.write_bytes(b"one")
    plain, with_model = own(f"{name}:Halved"), own(f"{name}:Halved?model={model}")
    assert plain.identity == f"quality={name}:Halved"
    assert plain.code == with_model.code
    assert str(model) not in with_model.identity
    model.write_bytes(b"two")
    changed = own(f"{name}:Halved?model={model}")
    assert changed.engines != with_model.engines
    assert changed.identity != with_model.identity
    long = "a" * 300  # no path
    assert long in own(f"{name}:Halved?model={long}").identity
    (code / "own_steps_here.py").write_text(MODULE + "\n")
    code_hash.cache_clear()
    assert own(f"{name}:Halved").code != plain.code


def test_options_are_written_as_in_an_address() -> None:
    # A plus is a plus, as in regular expressions.
    spec = parse_filter("mask=规则:C?pattern=a+b%20c&path=/m.bin&empty=")
    assert (spec.after, spec.module, spec.name) == ("mask", "规则", "C")
    assert spec.given == {"pattern": "a+b c", "path": "/m.bin", "empty": ""}


@pytest.mark.usefixtures("name")
def test_an_installed_package_offers_filters_and_profiles(code: Path) -> None:
    install(
        code,
        "[corpusmill.filters]\nhalved = own_steps_here:Halved\n"
        "[corpusmill.profiles]\nloud = own_steps_here:shouting\n",
    )
    assert own("halved?least=2").identity == own("own_steps_here:Halved?least=2").identity
    with pytest.raises(UserError, match="there are halved"):
        parse_filter("halve")
    judged = Quality.parse(["loud"]).judge(["Wow!!!!", "Wow!!!!!"], ["en", "en"])
    assert judged.reasons == [None, "shouting-many"]
    with pytest.raises(UserError, match="did you mean loud"):
        Quality.parse(["lou"])
