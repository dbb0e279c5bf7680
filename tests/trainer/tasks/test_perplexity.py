import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shards.errors import UserError
from tests.trainer.tasks.harness import FOLDER, figures, phrasing, tokenizer
from trainer.tasks.exam import Answers
from trainer.tasks.perplexity import (
    Document,
    PerplexityExam,
    causal_windows,
    detokenized,
    exponential,
    read_documents,
    read_wikitext,
)

GLM = {"is_causal": False, "mask": 506}


def exam(
    *texts: str, stride: int | None = None, length: int = 96, **changes: Any
) -> PerplexityExam:
    documents = [Document(original=text, text=text) for text in texts]
    return PerplexityExam.of(documents, phrasing(length=length, **changes), stride=stride)


def test_wikitext_is_put_together_as_lm_evaluation_harness_does() -> None:
    documents = read_wikitext(FOLDER / "wikitext.jsonl")
    requests = [[[document.text]] for document in documents]
    assert requests == figures()["wikitext"]["requests"]
    assert (
        detokenized("in 1 @,@ 204 ( the ' big ' one ) , N miles")
        == "in 1,204 (the 'big' one), 1 miles"
    )


def test_causal_windows_are_those_of_lm_evaluation_harness() -> None:
    for case in figures()["windows"]:
        # A token of its own for each letter, from 1 on.
        ids = np.arange(1, case["tokens"] + 1, dtype=np.int32)
        asked = exam("x y", length=case["length"], stride=case["stride"])
        windows = exam_windows(ids, asked, case)
        assert windows == case["windows"]


def exam_windows(ids: Any, asked: PerplexityExam, case: dict[str, Any]) -> list[Any]:
    windows = tuple(causal_windows(0, len(ids), case["length"], case["stride"]))
    own = replace(asked, documents=(ids,), windows=windows)
    rows = [own.row(i) for i in range(len(windows))]
    return [[row.tokens.tolist(), row.targets[row.loss_mask].tolist()] for row in rows]


@pytest.mark.parametrize("unidirectional", [False, True])
@pytest.mark.parametrize("stride", [1, 5, 15])
@pytest.mark.parametrize("size", [2, 14, 15, 16, 40])
def test_a_glm_scores_every_token_but_the_first_once(
    size: int, stride: int, unidirectional: bool
) -> None:
    text = "".join(f"{i}" for i in range(10)) * 4
    asked = exam(text[:size], stride=stride, length=16, unidirectional=unidirectional, **GLM)
    (ids,) = asked.documents
    scored = [row.targets[row.loss_mask] for row in map(asked.row, range(len(asked.windows)))]
    # A window that begins where the last one ended has no prompt: read left to right, its first
    # token is seen and not scored.
    lost = len(scored) - 1 if unidirectional and stride == 15 else 0
    assert len(np.concatenate(scored)) == len(ids) - 1 - lost
    if not lost:
        assert np.concatenate(scored).tolist() == ids[1:].tolist()
    assert max(len(asked.row(i)) for i in range(len(asked.windows))) <= 17


def test_a_row_of_one_token_is_refused() -> None:
    with pytest.raises(UserError, match=r"--length 1 leaves a glm no token"):
        exam("a b c", length=1, **GLM)


def test_figures() -> None:
    asked = exam("a b", "c d e", **GLM)
    targets = np.array([int(asked.row(i).loss_mask.sum()) for i in range(2)])
    answers = Answers(
        log_probability=-2.0 * targets, num_correct=np.zeros(2, int), num_targets=targets
    )
    found = asked.figures(answers)
    tokens = len(tokenizer().encode("a b")) + len(tokenizer().encode("c d e"))
    total = 2.0 * (tokens - 2)
    assert found["loss"] == 2.0
    assert found["perplexity"] == pytest.approx(math.exp(2))
    assert found["word_perplexity"] == pytest.approx(math.exp(total / 5))
    assert found["bits_per_byte"] == pytest.approx(total / 8 / math.log(2))
    assert found["reference_loss"] == pytest.approx(total / (tokens - 1))
    assert asked.counts == {"documents": 2, "tokens": tokens, "words": 5, "bytes": 8}


def test_an_exponential_that_is_too_large() -> None:
    assert exponential(1e4) == math.inf
    assert exponential(0.0) == 1.0


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"--stride 96 would leave out text .* windows of 95"):
        exam("a b c", stride=96, **GLM)
    with pytest.raises(UserError, match="no token that another one comes before"):
        exam("a", **GLM)
    empty = tmp_path / "wiki.test.raw"
    empty.write_text(" \n")
    for read in (read_wikitext, read_documents):
        with pytest.raises(UserError, match=r"wiki\.test\.raw is empty"):
            read(empty)
    empty.write_bytes(b"a\n\xff\n")
    with pytest.raises(UserError, match="is not UTF-8"):
        read_wikitext(empty)
    items = tmp_path / "pages.jsonl"
    items.write_text('{"text": "a b"}\n')
    with pytest.raises(UserError, match=r'pages\.jsonl, line 1: there is no field "page"'):
        read_wikitext(items)
    assert [document.text for document in read_documents(items)] == ["a b"]


def test_files_of_text(tmp_path: Path) -> None:
    path = tmp_path / "wiki.test.raw"
    path.write_bytes(b" = A = \n one , two \r\n\n three\n")
    (whole,) = read_wikitext(path)
    assert whole.original == path.read_bytes().decode()
    assert whole.text == detokenized(whole.original)
    assert [document.text for document in read_documents(path)] == [
        " = A = ",
        " one , two ",
        " three",
    ]
