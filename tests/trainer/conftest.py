from collections.abc import Callable

import pytest

from tests.trainer.alone import configured
from tests.trainer.runs import Trial
from tests.trainer.saved import TOKENIZER
from trainer.config import TrainConfig
from trainer.tokenizer import TextTokenizer


@pytest.fixture(scope="session")
def configure(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., TrainConfig]:
    """A function that returns the run that flags configure, of a small model on a small dataset."""
    flags = Trial.on_corpus(tmp_path_factory.mktemp("configured")).flags

    def configure(*more: str) -> TrainConfig:
        return configured([*flags, "--batch-size", "4", "--max-steps", "3", *more])

    return configure


@pytest.fixture(scope="session")
def tokenizer() -> TextTokenizer:
    """The tokenizer of the bundled sample."""
    return TextTokenizer(TOKENIZER)
