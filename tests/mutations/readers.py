"""Everything that reads a dataset, as functions to which a mutated one is given.

A reader returns an exit code or raises a UserError. Any other exception is a fault of the code, and
so is the death of the process.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np

from pipelines.dedup.earlier import known_bands, known_texts
from pipelines.run.command import main as run_corpus
from pipelines.segments.matches import matching_rows
from pipelines.segments.plan import Earlier
from shards.__main__ import main as shards
from shards.batch import read_batch
from shards.console import run_module
from shards.erasure import Erasure
from shards.exports.formats import FORMATS
from shards.manifest import TRAIN, VALIDATION, read_manifest
from shards.order.sampler import Sampler
from shards.order.streams import streams_of
from shards.range import EVERYTHING
from shards.reader import Dataset
from shards.tables import open_between
from shards.windows import WindowSpec, WindowVocabulary, causal_windows, glm_windows
from tests.mutations.victim import FLAGS
from tests.pipelines.runs import MODULE

for _name in ("pipelines.run.append", "pipelines.run.build"):
    import_module(_name)  # what commands load late, a case need not load under its bound of memory

_KEYS = {"exact": "hash_high", "band": "hash", "slots": "order"}


@dataclass(frozen=True)
class Scene:
    """A mutated dataset, and what its readers may need beside it."""

    dataset: Path
    input: Path
    """Of the dataset, with files that it has not seen."""
    scratch: Path
    """An empty folder."""
    rng: np.random.Generator


Reader = Callable[[Scene], int]


def _shards(*words: object) -> int:
    return shards([str(word) for word in words])


def _document(scene: Scene) -> int:
    split = (TRAIN, VALIDATION)[scene.rng.integers(2)]
    number = int(scene.rng.integers(20))
    return _shards("inspect", scene.dataset, "--doc", number, "--split", split)


def _documents(scene: Scene) -> int:
    """Read every document as a program does that uses the Reader."""
    dataset = Dataset.open(scene.dataset)
    for split in (TRAIN, VALIDATION):
        documents = dataset.documents(split=split)
        for number in range(len(documents)):
            dataset.vocabulary.decode(documents[number])
        for tokens in documents:
            assert tokens.nbytes < 1 << 20  # no document of the victim is as long
    return 0


def _sampled(spec: WindowSpec) -> Reader:
    def read(scene: Scene) -> int:
        """Read a few batches of windows, as a loader does."""
        dataset = Dataset.open(scene.dataset)
        streams = streams_of(dataset)
        vocabulary = WindowVocabulary.of(dataset)
        sampler = Sampler(streams, seed=1, num_scatters=1, window=spec)
        drawn = sampler.draw(np.arange(64))
        located = (column.tolist() for column in (drawn.stream, *sampler.locate(drawn)))
        rows = list(zip(*located, strict=True))
        opened = {
            key: dataset.shard(streams[key[0]].shards[key[1]])
            for key in dict.fromkeys(row[:2] for row in rows)
        }
        for boundaries in (False, True):
            read_batch(
                [opened[row[:2]] for row in rows],
                [window for _, _, window, _ in rows],
                phases=[phase for _, _, _, phase in rows],
                spec=spec,
                vocabulary=vocabulary,
                boundaries=boundaries,
            )
        return 0

    return read


def _trace(question: str) -> Reader:
    def read(scene: Scene) -> int:
        """Ask what a step trains on, or when a document is seen."""
        answers = {
            "--step": scene.rng.integers(50),
            "--document": f"part-1.json:{scene.rng.integers(9)}",
            "--url": f"{1:032x}",
        }
        flag = "--document" if question == "--url" else question
        run = ("--data", scene.dataset, "--batch-size", 4, "--length", 128, "--until", 9)
        return _shards("trace", flag, answers[question], *run[: 6 if flag == "--step" else 8])

    return read


def _remove_ids(scene: Scene) -> int:
    keys = [word for number in range(9) for word in ("--id", f"{number:032x}")]
    return _shards("remove", scene.dataset, *keys, "--missing-ok", "--reason", "asked")


def _signatures(scene: Scene) -> int:
    """Look hashes up as the dedup of --append does, and ranges as compact does."""
    values = np.sort(scene.rng.integers(0, 2**64 - 1, 40, np.uint64))
    manifest = read_manifest(scene.dataset)
    earlier = [Earlier.of(each, dedup="minhash") for each in manifest.generations]
    known_texts(scene.dataset, earlier, EVERYTHING, high=values, low=values)
    for band in range(len(earlier[0].bands)):
        known_bands(scene.dataset, earlier, band, EVERYTHING, hashes=values)
    for generation in manifest.generations:
        for entry in generation.signatures:
            path, key = scene.dataset / entry.path, _KEYS[Path(entry.path).stem.split("-")[0]]
            matching_rows(path, key, values, within=EVERYTHING)
            open_between(path, key, low=1 << 62, high=3 << 62)
    return 0


def _erasable(scene: Scene) -> int:
    """Read what compact --erase reads before it begins."""
    erasure = Erasure(Dataset(scene.dataset, read_manifest(scene.dataset)))
    for generation in erasure.dataset.manifest.generations:
        erasure.accounting(generation)
    return min(erasure.num_returned, erasure.num_documents, 0)


def _append(scene: Scene) -> int:
    files = ("--input", scene.input, "--output", scene.dataset)
    return run_corpus(MODULE, [*map(str, files), "--append", *FLAGS])


def _again(scene: Scene) -> int:
    files = ("--input", scene.input, "--output", scene.dataset)
    return run_corpus(MODULE, [*map(str, files), *FLAGS])


def _export(scene: Scene) -> int:
    to = [*FORMATS][scene.rng.integers(len(FORMATS))]
    return _shards("export", scene.dataset, "--to", to, "--output", scene.scratch / "exported")


READERS: Mapping[str, Reader] = {
    "inspect": lambda scene: _shards("inspect", scene.dataset),
    "inspect --doc": _document,
    "stats": lambda scene: _shards("stats", scene.dataset),
    "verify": lambda scene: _shards("verify", scene.dataset),
    "trace --step": _trace("--step"),
    "trace --document PATH:POSITION": _trace("--document"),
    "trace --document ID": _trace("--url"),
    "place --check": lambda scene: _shards("place", scene.dataset, "--check"),
    "remove --url --dry-run": lambda scene: _shards(
        "remove", scene.dataset, "--url", "https://*", "--id", f"{9:032x}", "--dry-run"
    ),
    "rethreshold": lambda scene: run_module("pipelines.rethreshold", [str(scene.dataset)]),
    "report": lambda scene: run_module(
        "pipelines.report",
        [str(scene.dataset), "--output", str(scene.scratch / "report.html")],
    ),
    "Reader": _documents,
    "GLM windows": _sampled(glm_windows(128)),
    "causal windows": _sampled(causal_windows(128)),
    "signatures": _signatures,
    "erasable": _erasable,
}
"""Those that change nothing."""

CHANGERS: Mapping[str, Reader] = {
    "place --to": lambda scene: _shards("place", scene.dataset, "--to", scene.scratch / "placed"),
    "export": _export,
    "prune": lambda scene: _shards("prune", scene.dataset),
    "remove": _remove_ids,
    "compact": lambda scene: _shards("compact", scene.dataset),
    "compact --erase": lambda scene: _shards("compact", scene.dataset, "--erase"),
    "append": _append,
    "again": _again,
}
"""Those that change the dataset, or make another of it; they take longer."""

_EVERY = ("verify", "inspect", "place --check")
_TOKENS = ("inspect --doc", "Reader", "GLM windows", "causal windows")
_TRACES = ("trace --step", "trace --document PATH:POSITION", "trace --document ID")
_DOCUMENTS = (*_TOKENS, *_TRACES, "stats", "remove --url --dry-run", "erasable")

READS: Mapping[str, Sequence[str]] = {
    "manifest.json": [*READERS, *CHANGERS],
    "vocabulary": (*_TOKENS, *_TRACES[:1], "place --to"),
    ".arrow": (*_DOCUMENTS, "remove", "compact", "compact --erase", "export"),
    ".bin": (*_TOKENS, *_TRACES, "compact", "export"),
    ".idx": ("verify", "compact"),
    "removals": (*_DOCUMENTS, "compact", "compact --erase", "remove", "export"),
    "audit": ("rethreshold", "erasable", "compact", "compact --erase"),
    "rejects": ("compact",),
    "dropped": ("erasable", "compact", "compact --erase"),
    "signatures": ("signatures", "erasable", "append", "compact", "compact --erase"),
    "inputs.json": ("append", "again"),
    "report.json": ("report", "append", "compact", "compact --erase"),
}
"""The readers that use files of each kind; those of _EVERY use all."""


def readers_of(kind: str) -> tuple[list[str], list[str]]:
    """Return the names of the readers that change nothing and use a kind of file, and of others."""
    names = [*READS[kind], *_EVERY]
    return [name for name in names if name in READERS], [name for name in names if name in CHANGERS]
