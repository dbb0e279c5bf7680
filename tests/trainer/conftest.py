import json
from collections.abc import Callable

import pytest

from tests.trainer.corpus import SHAPE, build
from trainer.config import Config, parse


@pytest.fixture(scope="session")
def torch_dynamo() -> None:
    """Import what activation checkpointing and FlexAttention otherwise load in the first test."""


@pytest.fixture(scope="session")
def configure(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Config]:
    """Return a function from flags to the run of a small model on a small dataset."""
    folder = tmp_path_factory.mktemp("configured")
    build(folder / "data")
    (folder / "model.json").write_text(json.dumps(SHAPE))
    flags = ("--data", str(folder / "data"), "--model", str(folder / "model.json"))

    def configure(*more: str) -> Config:
        return parse([*flags, "--batch-size", "4", "--max-steps", "3", *more], world=1)

    return configure
