import json
from pathlib import Path
from typing import Any

import pytest

from shards.errors import UserError
from tests.trainer.tasks.harness import figures, phrasing, tokenizer
from trainer.tasks.lambada import LambadaExam

GLM = {"is_causal": False, "mask": 506}


def exam(tmp_path: Path, *texts: str, **changes: Any) -> LambadaExam:
    path = tmp_path / "lambada.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return LambadaExam.of(path, phrasing(**changes))


def test_the_last_word_of_a_glm_has_its_punctuation(tmp_path: Path) -> None:
    asked = exam(tmp_path, "Mira sold the kettle\n to Noor. ", **GLM)
    row = asked.row(0)
    assert tokenizer().decode(row.targets[row.loss_mask].tolist()) == " Noor."
    assert tokenizer().decode(row.tokens[1 : (row.sep or 0) - 2].tolist()).endswith(" to")


def test_a_long_text_loses_its_beginning(tmp_path: Path) -> None:
    text = "Mira sold the kettle to " * 40 + "Noor"
    for changes, longest in (({}, 96), (GLM, 96), ({**GLM, "unidirectional": True}, 96)):
        asked = exam(tmp_path, text, **changes)
        assert asked.counts == {"items": 1, "cut": 1}
        row = asked.row(0)
        assert len(row) == longest
        assert tokenizer().decode(row.targets[row.loss_mask].tolist()) == " Noor"


def test_a_word_alone(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"lambada\.jsonl, line 2: .*at least two words"):
        exam(tmp_path, "Mira sang", "Mira ")


def test_the_requests_of_lm_evaluation_harness(tmp_path: Path) -> None:
    requests = [pair for item in figures()["lambada"]["requests"] for pair in item]
    assert len(requests) > 10
    asked = exam(tmp_path, *("".join(pair) for pair in requests), length=500)
    words = [tokenizer().decode(one.answer.tolist()) for one in asked.asked]
    assert words == [answer for _, answer in requests]
