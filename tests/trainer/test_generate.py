import io
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from shards.errors import UserError
from shards.shown import PartPrinter, visible
from trainer.decode.decoding import Decoding
from trainer.decode.prompt import Reading
from trainer.decode.text import Unfolding, text_of
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
    streamed = capsys.readouterr().out
    assert main([*published, TWO[0], TWO[2]]) == 0
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
    assert "a prompt a line; Ctrl-D ends" in shown.err
    assert "shorten it by hand" in shown.err


def test_characters_come_whole(tokenizer: TextTokenizer) -> None:
    tokens = tokenizer.encode("a🜁b")  # not among the pieces: a token a byte
    growing = Unfolding(tokenizer)
    parts = [growing.add(token) for token in tokens]
    assert "".join(parts).endswith("a🜁b")
    assert "" in parts
    assert growing.end() == ""
    broken = Unfolding(tokenizer)
    assert "".join(broken.add(token) for token in tokens[:-2]).endswith("a")
    assert broken.end() == "\ufffd"


EMOJI = {
    "a picture": "\u2764\ufe0f",
    "a family": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "a skin tone": "\U0001f44d\U0001f3fd",
    "a profession": "\U0001f469\U0001f3fd\u200d\U0001f680",
    "a flag": "\U0001f1e9\U0001f1ea",
    "a flag of tags": "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "a rainbow": "\U0001f3f3\ufe0f\u200d\U0001f308",
}


@pytest.mark.parametrize("emoji", EMOJI.values(), ids=EMOJI)
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_emoji_come_whole(emoji: str, size: int, capsys: pytest.CaptureFixture[str]) -> None:
    flag, other = EMOJI["a flag"], "\U0001f1eb\U0001f1f7"
    text = f"So{emoji}{emoji} {emoji}{flag}{other}. {emoji}"
    parts = parts_of(text, size)
    assert "".join(parts) == text
    for part in parts:
        for sign in (*emoji, *flag, *other):
            whole = part.replace(emoji, "").replace(flag, "").replace(other, "")
            assert sign not in whole
    assert printed(parts, capsys) == text


JOINED = ["\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "1\ufe0f\u20e3", "\u845b\U000e0100"]
"""Persian with a joiner, a digit in a frame, a variant of a Chinese character."""


@pytest.mark.parametrize("text", [*JOINED, "a\u200cb", "\ufe0f", "a\u200d", "x\U000e0041y"])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_what_is_printed_in_parts_is_as_if_printed_at_once(
    text: str, size: int, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = parts_of(f"{text} {text}{text}", size)
    shown = printed(parts, capsys)
    assert shown == visible(f"{text} {text}{text}")
    assert ("\u2039" in shown) is (text not in JOINED)


def test_plain_text_is_not_held_back() -> None:
    text = "Bread \u9762\u5305, 12 caf\xe9s."
    assert parts_of(text, 99) == [text, ""]


def parts_of(text: str, size: int) -> list[str]:
    """A text as it grows by tokens of so many bytes."""
    content = text.encode()
    cuts = [content[first : first + size] for first in range(0, len(content), size)]
    tokens: Any = SimpleNamespace(
        vocabulary_size=len(cuts), decode_bytes=lambda ids: b"".join(cuts[i] for i in ids)
    )
    growing = Unfolding(tokens)
    return [*(growing.add(token) for token in range(len(cuts))), growing.end()]


def printed(parts: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    printer = PartPrinter()
    for part in parts:
        printer.add(part)
    return capsys.readouterr().out


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
