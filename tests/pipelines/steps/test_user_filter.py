"""The identity of a custom filter, and the modules from which it may come."""

from pathlib import Path

import pytest

from pipelines.corpus.code import code_hash
from pipelines.quality import QualityRules
from pipelines.steps.filter_spec import parse_filter
from pipelines.steps.user_filter import UserFilterStep
from shards.errors import UserError
from tests.golden.corpus_own import own_code
from tests.pipelines.own_code import install

READER = """
class Reader:
    def __init__(self, model=""):
        pass

    def __call__(self, batch):
        return [None] * len(batch)
"""


@pytest.fixture(autouse=True)
def modules(code: Path) -> None:
    own_code(code)
    (code / "mine.py").write_text(READER)


def own(spec: str) -> UserFilterStep:
    return UserFilterStep(parse_filter(spec))


def test_its_identity_is_its_code_its_options_and_its_files(code: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.bin"
    model.write_bytes(b"one")
    plain, with_model = own("mine:Reader"), own(f"mine:Reader?model={model}")
    assert plain.identity == "quality=mine:Reader"
    assert plain.code == with_model.code
    assert str(model) not in with_model.identity
    model.write_bytes(b"two")
    changed = own(f"mine:Reader?model={model}")
    assert changed.library_versions != with_model.library_versions
    assert changed.identity != with_model.identity
    long = "a" * 300  # too long for a path
    assert long in own(f"mine:Reader?model={long}").identity
    (code / "mine.py").write_text(READER + "\n")
    code_hash.cache_clear()
    assert own("mine:Reader").code != plain.code


def test_options_are_written_as_in_an_address() -> None:
    # A plus sign means a plus sign, as in regular expressions.
    spec = parse_filter("mask=规则:C?pattern=a+b%20c&path=/m.bin&empty=")
    assert (spec.after, spec.module, spec.name) == ("mask", "规则", "C")
    assert spec.options == {"pattern": "a+b c", "path": "/m.bin", "empty": ""}


def test_an_installed_package_offers_filters_and_profiles(code: Path) -> None:
    install(
        code,
        "[corpusmill.filters]\nlength = own_filters:Length\n"
        "[corpusmill.profiles]\nsome = own_rules:few\n",
    )
    assert own("length?unit=2").identity == own("own_filters:Length?unit=2").identity
    with pytest.raises(UserError, match="there are length"):
        parse_filter("lengt")
    (code / "mine.py").write_text("def halves(text): return text.split('a')\n")
    code_hash.cache_clear()
    for spec, modules in (
        ("some", {"own_rules"}),
        ("ja@mine:halves=gopher", {"mine"}),
        ("ja@mine:halves=some", {"mine", "own_rules"}),
    ):
        assert QualityRules.parse([spec]).custom_code == {name: code_hash(name) for name in modules}
    judged = QualityRules.parse(["some"]).judge(["Wow wow wow", "Wow"], ["en", "en"])
    assert judged.reasons == [None, "few-too-few"]
    with pytest.raises(UserError, match="did you mean some"):
        QualityRules.parse(["som"])
