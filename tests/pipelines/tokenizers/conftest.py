import base64
from pathlib import Path

import pytest

from tests.golden.corpora import tokenizer
from tests.golden.corpus_scripts import byte_fallback, byte_level, pieces_of_words
from tests.pipelines.tokenizers.trained import KINDS, train


@pytest.fixture(scope="session")
def models_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tokenizers of every kind, whose ids are in a golden row."""
    folder = tmp_path_factory.mktemp("tokenizers")
    for write in (tokenizer, byte_level, pieces_of_words, byte_fallback):
        write(folder)
    return folder


@pytest.fixture(scope="session")
def nmt_nfkc() -> bytes:
    return train()


@pytest.fixture(scope="session", params=KINDS)
def content(request: pytest.FixtureRequest) -> bytes:
    """A SentencePiece model of each kind, in turn, trained for the test."""
    return train(**KINDS[request.param])


@pytest.fixture(scope="session")
def ranks(models_path: Path) -> dict[bytes, int]:
    """The ranks in a tiktoken file."""
    lines = (models_path / "cl100k_base.tiktoken").read_bytes().splitlines()
    rows = map(bytes.split, lines)
    return {base64.b64decode(piece): int(rank) for piece, rank in rows}


@pytest.fixture(
    params=[
        "sentencepiece:tok.model",
        "tiktoken:merges.txt",
        "hf:level.json",
        "hf:fallback.json",
        "hf:vocab.txt",
    ]
)
def spec(request: pytest.FixtureRequest, models_path: Path) -> str:
    kind, _, name = request.param.partition(":")
    return f"{kind}:{models_path / name}"
