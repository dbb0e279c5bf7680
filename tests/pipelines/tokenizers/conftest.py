import io
import json
from pathlib import Path

import pytest
import sentencepiece
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from pipelines.tokenizers.bpe import byte_alphabet
from tests.pipelines.tokenizers.texts import SENTENCES
from tests.pipelines.tokenizers.trained import KINDS, save_bert, train


@pytest.fixture(scope="session")
def models_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokenizers")


@pytest.fixture(scope="session")
def spm_path(models_path: Path) -> Path:
    sink = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 20),
        model_writer=sink,
        vocab_size=400,
        model_type="bpe",
        byte_fallback=True,
        user_defined_symbols=["<n>", "[MASK]", "\n"],
        control_symbols=["[gMASK]"],
        normalization_rule_name="identity",
        minloglevel=2,
    )
    path = models_path / "tiny.model"
    path.write_bytes(sink.getvalue())
    return path


@pytest.fixture(scope="session")
def nmt_nfkc() -> bytes:
    return train()


@pytest.fixture(scope="session", params=KINDS)
def content(request: pytest.FixtureRequest) -> bytes:
    """A SentencePiece model of each kind in turn."""
    return train(**KINDS[request.param])


@pytest.fixture(scope="session")
def byte_level() -> tokenizers.Tokenizer:
    library = tokenizers.Tokenizer(models.BPE())
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    library.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    library.train_from_iterator(SENTENCES, trainer)
    return library


@pytest.fixture(scope="session")
def hf_path(models_path: Path, byte_level: tokenizers.Tokenizer) -> Path:
    library = tokenizers.Tokenizer.from_str(byte_level.to_str())
    library.add_special_tokens(["<|endoftext|>", "<|im_start|>"])
    library.enable_truncation(4)
    library.enable_padding(length=8)
    path = models_path / "tokenizer.json"
    library.save(str(path))
    return path


@pytest.fixture(scope="session")
def gpt2_path(models_path: Path, byte_level: tokenizers.Tokenizer) -> Path:
    """GPT-2's two files: bytes in its own order, then the merges."""
    description = json.loads(byte_level.to_str())
    pieces = [*byte_alphabet(), *("".join(pair) for pair in description["model"]["merges"])]
    lines = ["#version: 0.2", *(" ".join(pair) for pair in description["model"]["merges"]), ""]
    path = models_path / "tiny-merges.txt"
    path.write_text("\n".join(lines), "utf-8")
    vocabulary = {piece: i for i, piece in enumerate([*pieces, "<|endoftext|>"])}
    (models_path / "tiny-vocab.json").write_text(json.dumps(vocabulary))
    return path


@pytest.fixture(scope="session")
def gpt2_ranks(gpt2_path: Path) -> dict[bytes, int]:
    """The model of GPT-2's two files as ranks."""
    alphabet = byte_alphabet()
    vocabulary = json.loads(gpt2_path.with_name("tiny-vocab.json").read_bytes())
    del vocabulary["<|endoftext|>"]
    return {bytes(alphabet[letter] for letter in piece): i for piece, i in vocabulary.items()}


@pytest.fixture(scope="session")
def bert_path(models_path: Path) -> Path:
    words = "[PAD] [UNK] [CLS] [SEP] [MASK] the dog ##s ##gy [ ] . mask"
    return save_bert(models_path / "bert.json", words.split())


@pytest.fixture(scope="session")
def bert_lines_path(models_path: Path) -> Path:
    words = "[PAD] [UNK] [CLS] [SEP] [MASK] the dog ##s ##gy [ ] . mask"
    path = models_path / "vocab.txt"
    path.write_text(words.replace(" ", "\n"))
    return path


@pytest.fixture(params=["sentencepiece", "tiktoken", "hf", "bert", "bert lines"])
def spec(request: pytest.FixtureRequest) -> str:
    kind, path = {
        "sentencepiece": ("sentencepiece", "spm_path"),
        "tiktoken": ("tiktoken", "gpt2_path"),
        "hf": ("hf", "hf_path"),
        "bert": ("hf", "bert_path"),
        "bert lines": ("hf", "bert_lines_path"),
    }[request.param]
    return f"{kind}:{request.getfixturevalue(path)}"
