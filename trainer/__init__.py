"""The GLM trainer: reads shards.

What is listed here is public (docs/own.md); all else may change without a word. torch is
imported with the first of these names that is used.
"""

from typing import TYPE_CHECKING

from shards.face import lazily

if TYPE_CHECKING:
    from trainer.decode.decoding import Decoding as Decoding
    from trainer.decode.writer import Generation as Generation
    from trainer.decode.writer import generate_texts as generate_texts
    from trainer.finetune.batches import answer as answer
    from trainer.loader import Loader as Loader
    from trainer.loader import read_once as read_once
    from trainer.opening import Opening as Opening
    from trainer.tasks.catalogue import find_task as find_task
    from trainer.tasks.task import Asking as Asking
    from trainer.trained import Trained as Trained
    from trainer.trained import open_trained as open_trained

_HOMES = {
    "Asking": "trainer.tasks.task",
    "Decoding": "trainer.decode.decoding",
    "Generation": "trainer.decode.writer",
    "Loader": "trainer.loader",
    "Opening": "trainer.opening",
    "Trained": "trainer.trained",
    "answer": "trainer.finetune.batches",
    "find_task": "trainer.tasks.catalogue",
    "generate_texts": "trainer.decode.writer",
    "open_trained": "trainer.trained",
    "read_once": "trainer.loader",
}
"""The module of each name."""
__all__ = list(_HOMES)

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, _HOMES)
