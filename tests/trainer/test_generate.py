import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from shards.errors import UserError
from trainer.decode.decoding import Decoding
from trainer.decode.prompt import Reading
from trainer.decode.text import StreamDecoder, text_of
from trainer.generate.__main__ import main
from trainer.generate.writing import generate_texts
from trainer.model.model import GLM
from trainer.model.sizes import ModelConfig
from trainer.tokenizer import TextTokenizer

SAMPLE = Path(__file__).parents[2] / "pipelines" / "sample" / "sample.model"
SHAPE: dict[str, Any] = {
    "num_layers": 2,
    "hidden_size": 32,
    "num_heads": 2,
    "vocab_size": 4096,
    "max_positions": 64,
    "init_std": 0.2,
}
TWO = ["Fold six [MASK] of paper.", "Bread [sMASK] and [MASK] [gMASK]", "Paper"]


@pytest.fixture(scope="module")
def tokenizer() -> TextTokenizer:
    return TextTokenizer(f"sentencepiece:{SAMPLE}")


@pytest.fixture(scope="module")
def model() -> GLM:
    torch.manual_seed(1)
    return GLM(ModelConfig(**SHAPE)).eval().requires_grad_(False)


@pytest.fixture(scope="module")
def published(model: GLM, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The flags of the command for the model as a file."""
    folder = tmp_path_factory.mktemp("published")
    (folder / "model.json").write_text(json.dumps(SHAPE))
    file = folder / "mp_rank_00_model_states.pt"
    torch.save({"module": model.state_dict()}, file)
    flags = ["--model", str(folder / "model.json"), "--tokenizer", f"sentencepiece:{SAMPLE}"]
    return [str(file), *flags, "--dtype", "fp32", "--device", "cpu", "--max-new-tokens", "6"]


DRAWN = Decoding(max_new_tokens=6, top_k=30, temperature=1.2)


def test_from_python(model: GLM, tokenizer: TextTokenizer) -> None:
    alone, together = (
        generate_texts(model, tokenizer, TWO, decoding=DRAWN, batch_size=size) for size in (1, 3)
    )
    assert alone == together
    first, second, third = alone
    assert first.text == f"Fold six{first.texts[0]} of paper."
    assert second.marks == ("[sMASK]", "[MASK]", "[gMASK]")
    assert second.text == f"Bread{second.texts[0]} and{second.texts[1]}{second.texts[2]}"
    assert third.prompt == "Paper"
    assert third.texts[0] == text_of(third.fillings[0].tokens, tokenizer)
    other = generate_texts(
        model, tokenizer, TWO, decoding=Decoding(max_new_tokens=6, top_k=30, seed=1)
    )
    assert other != alone


def test_a_model_without_task_masks_from_python(model: GLM, tokenizer: TextTokenizer) -> None:
    reading = Reading(causal=False, positions=model.config.position_rows, task_mask=False)
    (found,) = generate_texts(model, tokenizer, ["Bread"], reading=reading)
    assert found.marks == ("[MASK]",)
    with pytest.raises(UserError, match=r"has \[gMASK\], and the model .* without task masks"):
        generate_texts(model, tokenizer, ["Bread [gMASK]"], reading=reading)


def test_causal_from_python(tokenizer: TextTokenizer) -> None:
    torch.manual_seed(1)
    causal = GLM(ModelConfig(**SHAPE, block_positions=False)).eval()
    (found,) = generate_texts(
        causal, tokenizer, ["Fold [MASK]"], decoding=Decoding(max_new_tokens=4)
    )
    assert found.marks == ("",)
    assert found.text == f"Fold [MASK]{found.texts[0]}"


def test_json_lines(published: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*published, *TWO, "--json", "--batch-size", "2"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["prompt"] for line in lines] == TWO
    for line in lines:
        for blank in line["blanks"]:
            assert blank["finish"] in ("end", "length")
            assert len(blank["tokens"]) <= 6
            assert "score" not in blank
    assert main([*published, TWO[0], "--json", "--beams", "2", "--length-penalty", "1"]) == 0
    (blank,) = json.loads(capsys.readouterr().out)["blanks"]
    assert blank["score"] < 0


def test_flags_stand_anywhere(published: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for words in ([*TWO, "--top-k", "9"], ["--top-k", "9", *TWO], [TWO[0], "--top-k=9", *TWO[1:]]):
        assert main([published[0], *words, *published[1:]]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] == outputs[2]


def test_prompts_of_a_file_and_samples(
    published: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prompts.txt").write_text("\n".join(TWO))
    flags = ["--prompts", str(tmp_path / "prompts.txt"), "--samples", "2", "--top-p", "0.9"]
    assert main([*published, *flags, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["prompt"] for line in lines] == [text for text in TWO for _ in range(2)]
    assert lines[0] != lines[1]


def test_lines_of_the_standard_input(
    published: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join([TWO[0], "", TWO[2]])))
    assert main(published) == 0
    streamed, told = capsys.readouterr()
    assert told.endswith("waiting for prompts, one a line of the standard input.\n")
    assert main([*published, TWO[0], TWO[2]]) == 0
    assert streamed == capsys.readouterr().out.replace("\n\n", "\n")
    assert main([*published, "--prompt", TWO[0], "--prompt", TWO[2]]) == 0
    assert streamed == capsys.readouterr().out.replace("\n\n", "\n")


class Terminal(io.StringIO):
    """What a person types."""

    def isatty(self) -> bool:
        return True


def test_a_conversation(
    published: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("\n".join(["Bread", "word " * 99, "Paper"])))
    assert main([*published, "--samples", "2", "--top-k", "5"]) == 0
    shown = capsys.readouterr()
    answers = shown.out.splitlines()
    assert [answer[:5] for answer in answers] == ["Bread", "Bread", "Paper", "Paper"]
    assert len(set(answers)) == 4
    assert shown.err.count("> ") == 4
    assert "waiting for prompts, one a line; Ctrl-D ends" in shown.err
    assert "shorten it by hand" in shown.err


def test_characters_come_whole(tokenizer: TextTokenizer) -> None:
    tokens = tokenizer.encode("a🜁b")  # not among the pieces: a token a byte
    growing = StreamDecoder(tokenizer)
    parts = [growing.add(token) for token in tokens]
    assert "".join(parts).endswith("a🜁b")
    assert "" in parts
    assert growing.end() == ""
    broken = StreamDecoder(tokenizer)
    assert "".join(broken.add(token) for token in tokens[:-2]).endswith("a")
    assert broken.end() == "\ufffd"


@pytest.mark.parametrize("flags", [[], ["--top-k", "5"], ["--beams", "2"], ["--json"]])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_model_that_diverged_writes_nothing(
    model: GLM,
    published: list[str],
    flags: list[str],
    value: float,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    weights = {name: parameter.clone() for name, parameter in model.state_dict().items()}
    weights["transformer.final_layernorm.bias"][0] = value
    torch.save({"module": weights}, tmp_path / "mp_rank_00_model_states.pt")
    assert main([str(tmp_path), *published[1:], "Fold", *flags]) == 2
    captured = capsys.readouterr()
    assert captured.out.strip() in ("", "Fold")  # what stands before a blank is printed at once
    assert "the model's logits are NaN or infinite" in captured.err
    assert captured.err.count("\n") == 1


def test_rows_that_are_no_tokens(tokenizer: TextTokenizer) -> None:
    size = tokenizer.vocabulary_size
    assert text_of([size + 3], tokenizer) == f"⟨{size + 3}⟩"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--top-p", "2"], r"--top-p 2\.0: a probability, from 0 to 1"),
        (["--temperature", "-1"], r"--temperature -1\.0: a number from 0 on"),
        (["--temperature", "nan"], r"--temperature nan: a number from 0 on"),
        (["--beams", "3", "--top-k", "4"], r"--beams 3 takes the most probable text"),
        (["--length-penalty", "1"], r"--length-penalty compares beams: give --beams"),
        (["--min-new-tokens", "7"], r"--min-new-tokens 7 is more than --max-new-tokens 6"),
        (["--samples", "2"], r"--samples 2: they would all be the same"),
        (["--device", "meta"], r"--device meta: torch cannot compute on such a device here"),
        (["--device", "hpu"], r"--device hpu: torch cannot compute on such a device here \(No mod"),
        (["--device", "xpu:0"], r"--device xpu:0: torch cannot compute on such a device here"),
        (["--device", "toaster"], r"--device toaster: torch cannot compute .* Give cpu, cuda or"),
        (["word " * 99], r"the prompt \"word word .*shorten it by hand"),
    ],
)
def test_refusals(
    published: list[str], flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*published, "Fold", *flags]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert re.search(message, captured.err)
