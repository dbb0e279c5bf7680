"""Runs pipelines in this process, and collects the elements at their ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from pipelines.corpus.spec import SAMPLE
from pipelines.execute import beam
from shards.manifest import read_manifest

TOKENIZER = f"sentencepiece:{SAMPLE / 'sample.model'}"


class Seen:
    """The elements of collections, by name, from one pipeline at a time."""

    by_name: ClassVar[dict[str, list[Any]]] = {}

    def __init__(self) -> None:
        self.by_name.clear()

    def watch(self, name: str, elements: Any) -> None:
        """Collect the elements of a collection."""
        self.by_name[name] = []
        _ = elements | f"See {name}" >> beam.ParDo(_See(name))


class _See(beam.DoFn):
    def __init__(self, name: str) -> None:
        self._name = name

    def process(self, element: Any) -> None:
        Seen.by_name[self._name].append(element)


@contextmanager
def running() -> Iterator[tuple[Any, Seen]]:
    """Yield a pipeline, which runs at the end of the block, and the elements that it collects."""
    pipeline = beam.Pipeline(runner=beam.FnApiRunner())
    yield pipeline, Seen()
    pipeline.run().wait_until_finish()


def shipped(dataset: Path) -> dict[str, bytes]:
    """Return the files of a dataset's only generation, by paths without the generation's name."""
    (generation,) = read_manifest(dataset).generations
    folder = dataset / generation.name
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
