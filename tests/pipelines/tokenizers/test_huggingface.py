import json
from pathlib import Path

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

from pipelines.tokenizers.command_tokens import byte_bpe_commands, wordpiece_commands
from pipelines.tokenizers.tokenizer import load_tokenizer
from shards.errors import UserError
from tests.pipelines.tokenizers.texts import SENTENCES, decode, ids, shared
from tests.pipelines.tokenizers.trained import save_bert


def test_byte_level(hf_path: Path) -> None:
    tokenizer = load_tokenizer(f"hf:{hf_path}")
    assert tokenizer.pieces == 402
    assert tokenizer.special == dict(byte_bpe_commands(402, end_of_text=400).ids)
    text = SENTENCES[0]
    assert len(ids(tokenizer, text)) > 8, "truncation and padding of the file do not count"
    assert decode(tokenizer, text) == text


def test_end_token_that_is_not_marked_special(hf_path: Path, tmp_path: Path) -> None:
    description = json.loads(hf_path.read_text())
    for token in description["added_tokens"]:
        token["special"] = False
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(description))
    tokenizer = load_tokenizer(f"hf:{path}")
    assert 400 not in ids(tokenizer, "a<|endoftext|>b")
    assert 401 in ids(tokenizer, "a<|im_start|>b"), "other added tokens are vocabulary"


def test_bert(bert_path: Path) -> None:
    tokenizer = load_tokenizer(f"hf:{bert_path}")
    own = {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}
    assert tokenizer.special == dict(wordpiece_commands(13, own=own).ids)
    assert tokenizer.engine.startswith("tokenizers ")
    assert ids(tokenizer, "the dogs.") == [5, 6, 7, 11]
    assert decode(tokenizer, "the dogs.") == " the dogs ."


def test_bert_uncased(tmp_path: Path) -> None:
    words = shared("tokenizers/bert-base-uncased-vocab.txt").read_text("utf-8").splitlines()
    tokenizer = load_tokenizer(f"hf:{save_bert(tmp_path / 'bert.json', words)}")
    assert (tokenizer.pieces, tokenizer.vocabulary_size) == (30522, 30592)
    assert [tokenizer.special[role] for role in ("eos", "cls", "mask", "sep", "unk")] == [
        0, 101, 103, 102, 100,
    ]  # fmt: skip
    assert 103 not in ids(tokenizer, "a [MASK] b")


def test_with_byte_fallback(tmp_path: Path) -> None:
    pieces = ["<unk>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "\u2581", "a", "\u2581a"]
    library = tokenizers.Tokenizer(
        models.BPE(
            {piece: i for i, piece in enumerate(pieces)},
            [("\u2581", "a")],
            byte_fallback=True,
            unk_token="<unk>",
        )
    )
    library.pre_tokenizer = pre_tokenizers.Metaspace()
    library.add_special_tokens(["</s>"])
    path = tmp_path / "tokenizer.json"
    library.save(str(path))
    tokenizer = load_tokenizer(f"hf:{path}")
    assert tokenizer.special["eos"] == 1
    assert decode(tokenizer, "a行\n") == " a行\n"


def test_without_end(byte_level: tokenizers.Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    byte_level.save(str(path))
    with pytest.raises(
        UserError, match=r"no token to end a document .*<\|endoftext\|>, </s>, .*\[PAD\]"
    ):
        load_tokenizer(f"hf:{path}")


def test_a_model_that_the_library_refuses(hf_path: Path, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    description = json.loads(hf_path.read_text())
    description["model"]["type"] = "Oracle"
    path.write_text(json.dumps(description))
    with pytest.raises(UserError, match=r"tokenizer\.json: tokenizers cannot read it"):
        load_tokenizer(f"hf:{path}")
