"""The GLM trainer, which reads shards.

The names listed here are public (docs/own.md); all other names may change without notice. torch is
imported when the first of these names is used.
"""

import importlib
from typing import TYPE_CHECKING

from shards.commands.extras import missing_extras_explained

if TYPE_CHECKING:
    from trainer.finetune.scoring import predict
    from trainer.generate.decoding import Decoding
    from trainer.generate.text_generator import GeneratedText, generate_texts
    from trainer.import_weights.loaded_model import LoadedModel, open_model
    from trainer.load_options import LoadOptions
    from trainer.loader import Loader, read_once
    from trainer.tasks.catalogue import find_task
    from trainer.tasks.task import PromptOptions

__all__ = [
    "Decoding",
    "GeneratedText",
    "LoadOptions",
    "LoadedModel",
    "Loader",
    "PromptOptions",
    "find_task",
    "generate_texts",
    "open_model",
    "predict",
    "read_once",
]

_MODULES = {
    "Decoding": "generate.decoding",
    "GeneratedText": "generate.text_generator",
    "LoadOptions": "load_options",
    "LoadedModel": "import_weights.loaded_model",
    "Loader": "loader",
    "PromptOptions": "tasks.task",
    "find_task": "tasks.catalogue",
    "generate_texts": "generate.text_generator",
    "open_model": "import_weights.loaded_model",
    "predict": "finetune.scoring",
    "read_once": "loader",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with missing_extras_explained():
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
