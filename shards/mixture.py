"""What a run reads: datasets, whole or by source, weighed, from some position on.

DIR             a dataset, all its sources
DIR@n           as it was at manifest number n
DIR:SOURCE      one source of it
DIR=0.3         any of these with a weight
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from shards.errors import UserError
from shards.manifest import parse_dataset
from shards.order.stages import MixtureStage
from shards.order.streams import Stream, streams_of
from shards.reader import Dataset
from shards.storage.address import is_url, without_secrets
from shards.windows import num_windows


@dataclass(frozen=True, kw_only=True)
class WeightedData:
    """A dataset, or one source of it, with its weight."""

    dataset: str
    """DIR or DIR@n."""
    source: str | None = None
    weight: float | None = None

    def __str__(self) -> str:
        name = self.dataset if self.source is None else f"{self.dataset}:{self.source}"
        return name if self.weight is None else f"{name}={self.weight:g}"

    def streams(self) -> tuple[Stream, ...]:
        """Return its streams.

        Raises:
            UserError: there is no such dataset, or no such source in it.
        """
        dataset = Dataset.open(self.dataset)
        if self.source not in (None, *dataset.sources):
            raise UserError(
                f"{dataset.directory} has no source {self.source!r}; it has "
                f"{', '.join(dataset.sources)}."
            )
        sources = (self.source,) if self.source else dataset.sources
        names = {
            f"{part.fingerprint}/{s}" for part in dataset.manifest.generations for s in sources
        }
        return tuple(stream for stream in streams_of(dataset) if stream.name in names)


def parse_data(text: str) -> WeightedData:
    """Return what a text like `DIR:SOURCE=2` names; a folder that has this very name comes first.

    Raises:
        UserError: the weight is no number, or the dataset is behind a URL.
    """
    if is_url(text):
        raise UserError(
            f"{without_secrets(text)} is behind a URL, and training reads from a disk. Place it "
            f"there first: python -m shards place {without_secrets(text)} --to DISK; "
            "then give DISK."
        )
    name, weight = text, None
    if not _is_folder(text) and (split := re.fullmatch(r"(.+)=([^=/]*)", text, re.DOTALL)):
        name, weight = split[1], _number(split[2], text)
    if _is_folder(name) or ":" not in name:
        return WeightedData(dataset=name, weight=weight)
    dataset, _, source = name.rpartition(":")
    return WeightedData(dataset=dataset, source=source, weight=weight)


def _is_folder(text: str) -> bool:
    directory = parse_dataset(text)[0]
    return isinstance(directory, Path) and directory.is_dir()


def _number(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UserError(f"{whole}: {text!r} is no number; write DIR=0.3.") from None


@dataclass(frozen=True, kw_only=True)
class Mix:
    """What is drawn from some position on."""

    start: int
    """The first position: samples consumed before."""
    data: tuple[str, ...]
    """Each with a weight, or none of them: then every window weighs the same."""


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """The streams of some mixes, and their weights as the sampler takes them."""

    streams: tuple[Stream, ...]
    stages: tuple[MixtureStage, ...]

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """The datasets of the streams, each once."""
        return tuple({stream.dataset.directory: stream.dataset for stream in self.streams}.values())


def open_mixture(mixes: Sequence[Mix], *, stride: int) -> Mixture:
    """Return the streams of mixes, windows of this stride weighing what their data do.

    A stream that several mixes draw from is taken from the last of them: of a dataset that grew,
    the newest manifest number says what was removed.

    Raises:
        UserError: data are not there, are given twice, or have no weight where others do.
    """
    streams: dict[str, Stream] = {}
    stages = []
    for mix in mixes:
        weights: dict[str, float] = {}
        for data in _parsed(mix):
            for stream, weight in _weighed(data, stride=stride):
                if stream.name in weights:
                    raise UserError(f"{data}: its stream {stream.name} is given twice.")
                weights[stream.name] = weight
                streams[stream.name] = stream
        stages.append(MixtureStage(start=mix.start, weights=weights))
    return Mixture(streams=tuple(streams.values()), stages=tuple(stages))


def _parsed(mix: Mix) -> Sequence[WeightedData]:
    entries = [parse_data(text) for text in mix.data]
    bare = [str(data) for data in entries if data.weight is None]
    if not entries:
        raise UserError(f"no data from position {mix.start} on: name a dataset (--data DIR).")
    if bare and len(bare) < len(entries):
        raise UserError(
            f"{', '.join(bare)} has no weight, and other data have one: weigh all of them "
            "(DIR=0.3 DIR:SOURCE=2), or none, so that every window weighs the same."
        )
    return entries


def _weighed(data: WeightedData, *, stride: int) -> Iterator[tuple[Stream, float]]:
    """Yield the streams of data, the weight spread over them by what each has of windows."""
    streams = data.streams()
    sizes = [sum(num_windows(s.tokens, stride) for s in stream.shards) for stream in streams]
    for stream, size in zip(streams, sizes, strict=True):
        yield stream, size if data.weight is None else data.weight * size / sum(sizes)


def epoch_caps(caps: Mapping[str, float]) -> dict[str, float]:
    """Return caps on epochs by stream, given by `DIR` or `DIR:SOURCE`."""
    return {stream.name: cap for text, cap in caps.items() for stream in parse_data(text).streams()}
