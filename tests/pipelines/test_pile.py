from typing import Any

from pipelines.pile import PileOptions, documents


def record(subset: str, text: str = "some text") -> dict[str, Any]:
    return {"text": text, "meta": {"pile_set_name": subset}}


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
