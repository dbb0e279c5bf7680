from collections import Counter
from typing import Any

import pytest

from pipelines.pile import RECIPE, PileOptions, documents
from tests.pipelines.real import real_records

HALF = ("ArXiv=0.5",)


def record(subset: str, text: str = "some text") -> dict[str, Any]:
    return {"text": text, "meta": {"pile_set_name": subset}}


@pytest.mark.parametrize(
    ("subset", "changes", "share"),
    [
        ("A subset of tomorrow", {}, 1.0),
        ("A subset of tomorrow", {"recipe": "glm"}, 1.0),
        ("Github", {"recipe": "glm", "keep": ("Github=0.25",)}, 0.25),
        ("ArXiv", {"recipe": "glm", "keep": ("ArXiv=1",)}, 1.0),
        ("Books3", {"deny": ("Books3",), "keep": ("Books3=1",)}, 0.0),
        ("ArXiv", {"allow": ("ArXiv",), "keep": HALF}, 0.5),
        ("A subset of tomorrow", {"allow": ("ArXiv",)}, 0.0),
        ("Gutenberg (PG-19)", {"keep": ("Gutenberg (PG-19)=0.1",)}, 0.1),
    ],
)
def test_how_much_of_a_subset_is_taken(subset: str, changes: dict[str, Any], share: float) -> None:
    options = PileOptions(**changes)
    assert options.share(subset) == share
    (made,) = documents(record(subset), options)
    assert (made.text, made.prompt, made.provenance) == ("some text", "", {"subset": subset})
    if share in (0, 1):
        assert made.reason == (None if share else "subset")


def test_shares_nest_and_are_as_large_as_they_say() -> None:
    texts = [f"paper number {number}" for number in range(4000)]

    def taken(share: float, seed: int = 0) -> set[str]:
        options = PileOptions(keep=(f"ArXiv={share}",), seed=seed)
        made = [documents(record("ArXiv", text), options)[0] for text in texts]
        assert {document.reason for document in made} == {None, "subset-share"}
        return {document.text for document in made if document.reason is None}

    assert taken(0.1) < taken(0.3) < taken(0.9)
    assert abs(len(taken(0.3)) - 1200) < 116  # four standard deviations
    assert len(taken(0.3) & taken(0.3, seed=1)) < 500
    others = PileOptions(keep=("ArXiv=0.3",))
    assert {documents(record("FreeLaw", text), others)[0].reason for text in texts} == {None}


def test_real_files() -> None:
    options = PileOptions(deny=("Gutenberg (PG-19)",))
    records = real_records("corpora/pile", RECIPE.reading(options))
    made = [documents(each.value, options)[0] for each in records]
    found = Counter((document.provenance["subset"], document.reason) for document in made)
    assert found == {("Gutenberg (PG-19)", "subset"): 56, ("Wikipedia (en)", None): 60}
