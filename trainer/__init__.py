"""The GLM trainer: reads shards.

What is listed here is public (docs/own.md); all else may change without a word. torch is
imported with the first of these names that is used.
"""

from typing import TYPE_CHECKING

from shards.face import lazily

if TYPE_CHECKING:
    from trainer.finetune.scoring import predict as predict
    from trainer.generate.decoding import Decoding as Decoding
    from trainer.generate.writer import GeneratedText as GeneratedText
    from trainer.generate.writer import generate_texts as generate_texts
    from trainer.import_weights.loaded_model import LoadedModel as LoadedModel
    from trainer.import_weights.loaded_model import open_model as open_model
    from trainer.load_options import LoadOptions as LoadOptions
    from trainer.loader import Loader as Loader
    from trainer.loader import read_once as read_once
    from trainer.tasks.catalogue import find_task as find_task
    from trainer.tasks.task import PromptOptions as PromptOptions
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
