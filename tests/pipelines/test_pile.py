from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from pipelines.corpus.document import Rejected
from pipelines.pile import GLM_SHARES, RECIPE, SUBSETS, PileOptions, documents
from pipelines.segments.rows import REJECTS
from shards.errors import UserError
from tests.pipelines.real import real_records

HALF = ("ArXiv=0.5",)


def record(subset: str, text: str = "some text") -> dict[str, Any]:
    return {"text": text, "meta": {"pile_set_name": subset}}


@pytest.mark.parametrize(
    ("subset", "changes", "share"),
    [
        ("Github", {}, 1.0),
        ("A subset of tomorrow", {}, 1.0),
        ("Github", {"recipe": "glm"}, 0.0),
        ("ArXiv", {"recipe": "glm"}, 0.3),
        ("Books3", {"recipe": "glm"}, 1.0),
        ("A subset of tomorrow", {"recipe": "glm"}, 1.0),
        ("Github", {"recipe": "glm", "keep": ("Github=0.25",)}, 0.25),
        ("ArXiv", {"recipe": "glm", "keep": ("ArXiv=1",)}, 1.0),
        ("Books3", {"deny": ("Books3",)}, 0.0),
        ("Books3", {"deny": ("Books3",), "keep": ("Books3=1",)}, 0.0),
        ("Books3", {"allow": ("ArXiv", "FreeLaw")}, 0.0),
        ("ArXiv", {"allow": ("ArXiv", "FreeLaw")}, 1.0),
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


def test_there_are_22_subsets_and_glm_names_ten_of_them() -> None:
    assert len(set(SUBSETS)) == 22
    assert set(GLM_SHARES) < set(SUBSETS)
    assert Counter(GLM_SHARES.values()) == {0.0: 7, 0.3: 3}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"deny": ("Githb",)},
            r"'Githb' is not a subset of the Pile: did you mean 'Github'\? ",
        ),
        ({"allow": ("arxiv",)}, r"did you mean 'ArXiv'"),
        ({"allow": ("####",)}, r"'####' is not a subset of the Pile: They are ArXiv, "),
        ({"keep": ("Books4=0.5",)}, r"'Books4' is not a subset"),
        ({"keep": ("ArXiv",)}, r"--keep 'ArXiv': expected is NAME=SHARE"),
        ({"keep": ("ArXiv=2",)}, r"a share from 0 to 1"),
        ({"keep": ("ArXiv=nan",)}, r"a share from 0 to 1"),
        ({"keep": ("=0.5",)}, r"expected is NAME=SHARE"),
    ],
)
def test_wrong_names_and_shares_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        PileOptions(**changes)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"meta": {"pile_set_name": "ArXiv"}}, "missing-field"),
        ({"text": "x"}, "missing-field"),
        ({"text": "x", "meta": {}}, "missing-field"),
        ({"text": "x", "meta": "ArXiv"}, "wrong-type"),
        ({"text": "x", "meta": {"pile_set_name": 3}}, "wrong-type"),
        ({"text": ["x"], "meta": {"pile_set_name": "ArXiv"}}, "wrong-type"),
    ],
)
def test_what_is_no_record_is_rejected(broken: dict[str, Any], reason: str) -> None:
    assert reason in REJECTS
    with pytest.raises(Rejected, match=f"^{reason}$"):
        documents(broken, PileOptions())


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("train/00.jsonl.zst", True),
        ("29.jsonl", True),
        ("07.jsonl.gz", True),
        ("val.jsonl.zst", False),
        ("test.jsonl.zst", False),
    ],
)
def test_validation_and_test_are_not_among_the_files(name: str, found: bool) -> None:
    assert any(Path(name).match(pattern) for pattern in RECIPE.pattern) is found


def test_columns_are_those_that_records_fill() -> None:
    options = PileOptions()
    assert set(documents(record("ArXiv"), options)[0].provenance) == set(RECIPE.provenance(options))
    assert RECIPE.group in RECIPE.provenance(options)


def test_real_files() -> None:
    options = PileOptions(deny=("Gutenberg (PG-19)",))
    records = real_records("corpora/pile", RECIPE.reading(options))
    made = [documents(each.value, options)[0] for each in records]
    found = Counter((document.provenance["subset"], document.reason) for document in made)
    assert found == {("Gutenberg (PG-19)", "subset"): 56, ("Wikipedia (en)", None): 60}
