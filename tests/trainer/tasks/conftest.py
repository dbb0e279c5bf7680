from pathlib import Path

import pytest

from tests.trainer.tasks.toy import Desk, make_tokenizer
from trainer.tokenizer import TextTokenizer


@pytest.fixture(scope="session")
def toy_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    return make_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture
def desk(tmp_path: Path, toy_tokenizer: TextTokenizer) -> Desk:
    return Desk(tmp_path, toy_tokenizer)
