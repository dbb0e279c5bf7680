from typing import Any

import pytest

from pipelines.corpus.document import Rejected
from pipelines.corpus.flags import parse
from pipelines.openwebtext import RECIPE, OpenwebtextOptions, documents


@pytest.mark.parametrize(("length", "reason"), [(101, None), (100, "too-short")])
def test_more_than_100_characters(length: int, reason: str | None) -> None:
    (made,) = documents({"text": "x" * length, "url": "u"}, OpenwebtextOptions())
    assert (made.text, made.reason, made.provenance) == ("x" * length, reason, {"url": "u"})
    assert set(made.provenance) == set(RECIPE.provenance(OpenwebtextOptions()))


@pytest.mark.parametrize(("record", "reason"), [({}, "missing-field"), ({"text": 7}, "wrong-type")])
def test_what_is_no_page_is_rejected(record: dict[str, Any], reason: str) -> None:
    with pytest.raises(Rejected, match=f"^{reason}$"):
        documents(record, OpenwebtextOptions())


def test_english_however_unsure_unless_told_otherwise() -> None:
    options, _ = parse(OpenwebtextOptions, [], program="test", about="")
    assert (options.languages, options.language_threshold) == (("en",), 0.0)
    flags = ["--languages", "en,de", "--language-threshold", "0.65"]
    options, _ = parse(OpenwebtextOptions, flags, program="test", about="")
    assert (options.languages, options.language_threshold) == (("en", "de"), 0.65)
