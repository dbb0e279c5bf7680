"""The shape of a model, found without torch: of a run, a published model, or one that is named."""

from pathlib import Path

from shards.errors import UserError
from shards.records import from_json
from trainer.import_weights.config_json import CONFIG, described_folder, shape_in
from trainer.import_weights.foreign import refuse_foreign
from trainer.json_file import read_object
from trainer.model.sizes import ModelConfig

_LIST = "whole-*.json"
"""The lists of a checkpoint's files."""


def shape_named(name: str) -> ModelConfig:
    """Return the shape that `--model` names: as `ModelConfig.named`, or a config.json.

    Raises:
        UserError: there is no such model.
    """
    path = Path(name)
    is_config = path.name == CONFIG and path.is_file()
    return shape_in(path.parent) if is_config else ModelConfig.named(name)


def shape_at(path: Path) -> ModelConfig | None:
    """Return the shape of a model as what is beside its weights describes it; None if nothing does.

    Args:
        path: of a run, of one of its checkpoints, or of a published model.

    Raises:
        UserError: it holds a model of another kind.
    """
    if (folder := described_folder(path)) is not None:
        return shape_in(folder)
    refuse_foreign(path)
    return _shape_of_run(path)


def _shape_of_run(path: Path) -> ModelConfig | None:
    """Return the shape that the checkpoints of a run record; all of them record the same.

    Lists that cannot be read are reported when the weights are.
    """
    for pattern in (_LIST, f"step-*/{_LIST}"):
        for list_of_files in sorted(path.glob(pattern)):
            try:
                model = read_object(list_of_files)["state"]["identity"]["model"]
                return from_json(ModelConfig, model, where="model")
            except (UserError, KeyError, TypeError, ValueError):
                continue
    return None
