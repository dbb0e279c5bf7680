"""The data of a training run: weighted datasets or sources, which may change at given positions.

DIR             all sources of a dataset
DIR@n           the dataset as it was at manifest number n
DIR:SOURCE      one of its sources
DIR=0.3         any of these with a weight

DIR may be hf:OWNER/NAME[@REVISION], a published dataset, which is first downloaded to a folder.

    Blends, as the user writes them ── open_mixture ──▶ Mixture: streams and stages, for a Sampler
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from shards.commands.table import called
from shards.errors import UserError
from shards.manifest import distinct_labels, hub_name, parse_dataset, split_number
from shards.reader import Dataset
from shards.sampling.mixture_schedule import MAX_PERIOD, draws_per_period
from shards.sampling.stages import MixtureStage
from shards.sampling.streams import Stream, streams_of
from shards.sampling.windows import num_windows
from shards.secrets import without_secrets
from shards.storage.address import is_url
from shards.storage.hub import PREFIX, HubName
from shards.storage.remote import AnyPath, any_path


@dataclass(frozen=True, kw_only=True)
class WeightedData:
    """A dataset, or one of its sources, with a weight."""

    dataset: str
    """DIR or DIR@n."""
    source: str | None = None
    weight: float | None = None

    def __str__(self) -> str:
        name = self.dataset if self.source is None else f"{self.dataset}:{self.source}"
        if self.weight is None:
            return name
        return f"{name}={self.weight!r}".removesuffix(".0")

    @property
    def directory(self) -> AnyPath:
        """The dataset's folder."""
        return parse_dataset(self.dataset)[0]

    @property
    def number(self) -> int | None:
        """The manifest number; None stands for the newest."""
        return parse_dataset(self.dataset)[1]

    def at(self, number: int) -> "WeightedData":
        """Return the same data as they are at a manifest number."""
        return replace(self, dataset=f"{self.directory}@{number}")

    @property
    def published(self) -> HubName | None:
        """The dataset's name on the hub; None for data in a folder."""
        return hub_name(split_number(self.dataset)[0])

    def absolute(self) -> "WeightedData":
        """Return the same data with an absolute path."""
        directory = self.directory
        return self._in(directory.absolute()) if isinstance(directory, Path) else self

    def downloaded(self, where: Callable[[HubName], object]) -> "WeightedData":
        """Return the same data in the folder that a function returns for their name on the hub.

        Data in a folder are returned unchanged.
        """
        return self if self.published is None else self._in(where(self.published))

    def _in(self, directory: object) -> "WeightedData":
        at = "" if self.number is None else f"@{self.number}"
        return replace(self, dataset=f"{directory}{at}")

    def includes(self, stream: Stream) -> bool:
        """Return whether a stream belongs to these data, at any manifest number."""
        same_source = self.source in (None, stream.name.split("/")[1])
        return same_source and stream.dataset.directory == self.directory


def parse_data(text: str) -> WeightedData:
    """Parse a text like `DIR:SOURCE=2`; the name of an existing folder is not split.

    Raises:
        UserError: the weight is not a number, the dataset is at a URL, or its name on the hub is
            invalid.
    """
    if is_url(text):
        raise UserError(
            f"{without_secrets(text)} is a URL, but training reads from a disk. Copy it first: "
            f"{called('shards place')} {without_secrets(text)} --to DISK; then give DISK."
        )
    name, weight = text, None
    if not _is_folder(text) and (split := re.fullmatch(r"(.+)=([^=/]*)", text, re.DOTALL)):
        name, weight = split[1], _parse_weight(split[2], text)
    source = None
    if not _is_folder(name) and ":" in name.removeprefix(PREFIX):
        name, _, source = name.rpartition(":")
    parse_dataset(name)  # refuses invalid names of the hub
    return WeightedData(dataset=name, source=source, weight=weight)


def _is_folder(text: str) -> bool:
    directory = any_path(split_number(text)[0])
    with suppress(OSError):  # for example, the name is too long
        return isinstance(directory, Path) and directory.is_dir()
    return False


def _parse_weight(weight: str, text: str) -> float:
    try:
        return float(weight)
    except ValueError:
        raise UserError(f"{text}: {weight!r} is not a number; write DIR=0.3.") from None


@dataclass(frozen=True, kw_only=True)
class Blend:
    """The data to draw, beginning at a position, as texts for `parse_data`."""

    start: int
    """The first position, which is the number of samples drawn before this blend."""
    data: tuple[str, ...]
    """The data. Either all have a weight, or none has and every window has the same weight."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Weights by stream name that replace those in `data`; set if a run follows a growing
    dataset."""


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """The streams of all blends with their weights, in the form that a sampler takes."""

    streams: tuple[Stream, ...]
    stages: tuple[MixtureStage, ...]

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """The distinct datasets of the streams."""
        return tuple({stream.dataset.directory: stream.dataset for stream in self.streams}.values())


def open_mixture(blends: Sequence[Blend], *, stride: int) -> Mixture:
    """Return the streams and stages of blends; `stride` is that of the windows that are drawn.

    A stream of several blends is opened as the last of these blends names it, so that the newest
    manifest number of a dataset decides which documents are removed. A blend with the same weights
    as the previous one continues the previous stage, so that new removals alone change no draw.

    Raises:
        UserError: data do not exist, are given twice, or lack a weight while other data have one.
    """
    streams: dict[str, Stream] = {}
    stages: list[MixtureStage] = []
    datasets = _open_all(blends)
    for blend in blends:
        weights: dict[str, float] = {}
        for data in parse_blend(blend):
            for stream, weight in _spread_weight(data, datasets[data.dataset], stride=stride):
                if stream.name in weights:
                    raise UserError(f"{data}: its stream {stream.name} is given twice.")
                weights[stream.name] = weight
                streams[stream.name] = stream
        weights = dict(blend.weights) or _drawable(weights, parse_blend(blend))
        if not stages or weights != stages[-1].weights:
            stages.append(MixtureStage(start=blend.start, weights=weights))
    return Mixture(streams=tuple(streams.values()), stages=tuple(stages))


def _drawable(weights: dict[str, float], blend: Sequence[WeightedData]) -> dict[str, float]:
    """Return weights derived from sizes; weights too small to be drawn are raised.

    Raises:
        UserError: a weight that the user gave is too small to be drawn.
    """
    given = [data.weight for data in blend if data.weight is not None]
    if given:
        draws_per_period(given)
    try:
        draws_per_period(list(weights.values()))
    except UserError:
        least = 2 * sum(weights.values()) / MAX_PERIOD
        return {name: weight and max(weight, least) for name, weight in weights.items()}
    return weights


def _open_all(blends: Sequence[Blend]) -> dict[str, Dataset]:
    """Return the dataset of each of the data in blends; each manifest is read once."""
    data = [data for blend in blends for data in parse_blend(blend)]
    newest: dict[AnyPath, Dataset] = {}
    datasets: dict[str, Dataset] = {}
    # The newest number comes first: its dataset contains all shards of the others.
    for each in sorted(data, key=lambda each: (each.number is not None, -(each.number or 0))):
        if each.directory not in newest:
            newest[each.directory] = Dataset.open(each.dataset)
        opened = newest[each.directory]
        datasets[each.dataset] = opened if each.number is None else opened.as_of(each.number)
    return datasets


def parse_blend(blend: Blend) -> Sequence[WeightedData]:
    """Return the data of a blend.

    Raises:
        UserError: there are no data, or some have a weight and others do not.
    """
    entries = [parse_data(text) for text in blend.data]
    unweighted = [str(data) for data in entries if data.weight is None]
    if not entries:
        raise UserError(f"no data from position {blend.start} on: name a dataset (--data DIR).")
    if unweighted and len(unweighted) < len(entries):
        raise UserError(
            f"{', '.join(unweighted)} has no weight, but other data do: give all of them a weight "
            "(DIR=0.3 DIR:SOURCE=2), or none, so that every window has the same weight."
        )
    return entries


def check_tokenizers(datasets: Sequence[Dataset]) -> None:
    """Check that the token ids of all datasets mean the same text.

    Raises:
        UserError: two of them have different tokenizers.
    """
    first = datasets[0].manifest.tokenizer
    for dataset in datasets[1:]:
        other = dataset.manifest.tokenizer
        if (other.sha256, other.special) != (first.sha256, first.special):
            one, two = distinct_labels((first.label, first.sha256), (other.label, other.sha256))
            raise UserError(
                f"{datasets[0].directory} was made with tokenizer {one} and {dataset.directory} "
                f"with {two}: the same token id means different text. Train on datasets with the "
                "same tokenizer."
            )


def _spread_weight(
    data: WeightedData, dataset: Dataset, *, stride: int
) -> Iterator[tuple[Stream, float]]:
    """Yield the streams of data with their weights, proportional to their numbers of windows."""
    streams = streams_of(dataset, data.source)
    sizes = [
        sum(num_windows(shard.tokens, stride) for shard in stream.shards) for stream in streams
    ]
    for stream, size in zip(streams, sizes, strict=True):
        yield stream, size if data.weight is None else data.weight * size / sum(sizes)


def epoch_caps(caps: Mapping[str, float], streams: Sequence[Stream]) -> dict[str, float]:
    """Return caps on epochs by stream name; the keys of `caps` are `DIR` or `DIR:SOURCE`.

    Raises:
        UserError: a cap is given for data that have no stream.
    """
    capped: dict[str, float] = {}
    for text, cap in caps.items():
        data = parse_data(text)
        named = {stream.name: cap for stream in streams if data.includes(stream)}
        if not named:
            raise UserError(
                f"a maximum of epochs is given for {text}, which this run does not read: give data "
                "of the run, as DIR or DIR:SOURCE."
            )
        capped |= named
    return capped
