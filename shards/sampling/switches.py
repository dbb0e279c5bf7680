"""Switches of a run to newer manifests of its datasets.

    --data DIR ── pinned ──▶ mix from 0 on: DIR@1
                                 │
    position, {DIR: 2} ─ switched ▶ mixes from the position on: DIR@2, with weights by stream

A switch changes the numbers of the data, and nothing before its position. It may consist of several
consecutive mixes of the same data, until all text has been seen once.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import groupby

from shards.errors import UserError
from shards.manifest import read_manifest
from shards.sampling.mixture import Blend, WeightedData, open_mixture, parse_blend, parse_data
from shards.sampling.run import Run
from shards.sampling.sampler import Sampler
from shards.sampling.unseen import Group, stages_until_seen


def resolve_versions(run: Run) -> Run:
    """Return the run with the current manifest numbers for data that name none.

    Raises:
        UserError: there is no such dataset.
    """
    return replace(run, mixes=tuple(_pinned_mix(mix) for mix in run.mixes))


def _pinned_mix(mix: Blend) -> Blend:
    numbered = (
        data if data.number is not None else data.at(read_manifest(data.directory).number)
        for data in parse_blend(mix)
    )
    return replace(mix, data=tuple(map(str, numbered)))


def resumed(given: Run, saved: Run) -> Run:
    """Return the given run with the numbers and switches of the saved one.

    The datasets may be in other folders now. If the data differ otherwise, the given data are kept,
    with numbers added.

    Raises:
        UserError: there is no such dataset.
    """
    first, *later = given.mixes
    saved_mixes = {mix.start: mix for mix in saved.mixes}
    base = saved_mixes[0]
    if saved.followed is None or _moved(first, base, base=base) is None:
        mixes = (_moved(mix, saved_mixes.get(mix.start)) or mix for mix in given.mixes)
        return resolve_versions(replace(given, mixes=tuple(mixes)))
    until = later[0].start if later else None
    switches = (mix for mix in saved.mixes if until is None or mix.start < until)
    followed = (_moved(first, mix, base=base) for mix in switches)
    known = tuple(mix for mix in followed if mix is not None)
    return resolve_versions(replace(given, mixes=(*known, *later), followed=saved.followed))


def _moved(given: Blend, saved: Blend | None, *, base: Blend | None = None) -> Blend | None:
    """Return a saved mix with the folders of a given one; None if their data differ.

    A given number must equal the one in `base`, if there is one; otherwise it is kept.
    """
    if saved is None or len(given.data) != len(saved.data):
        return None
    based = (base or saved).data
    moved = []
    for own, other, first in zip(*map(_parsed, (given.data, saved.data, based)), strict=True):
        if (own.source, own.weight) != (other.source, other.weight) or other.number is None:
            return None
        if base is not None and own.number not in (None, first.number):
            return None
        is_newest = own.number is None or base is not None
        moved.append(str(own.at(other.number) if is_newest else own))
    return replace(saved, data=tuple(moved))


def _parsed(data: Sequence[str]) -> list[WeightedData]:
    return [parse_data(text) for text in data]


def min_common_version(runs: Sequence[Run]) -> Run:
    """Return the run with the lowest number of each dataset, which all nodes can read."""
    mixes = []
    for of_nodes in zip(*(run.mixes for run in runs), strict=True):
        columns = zip(*(_parsed(mix.data) for mix in of_nodes), strict=True)
        lowest = (min(column, key=lambda data: data.number or 0) for column in columns)
        mixes.append(replace(of_nodes[0], data=tuple(map(str, lowest))))
    return replace(runs[0], mixes=tuple(mixes))


def same_until(run: Run, other: Run, position: int) -> bool:
    """Return whether two runs have the same mixes before a position; folders may differ."""
    return _content(run, position) == _content(other, position)


def _content(run: Run, position: int) -> list[object]:
    return [
        (mix.start, dict(mix.weights), [(d.source, d.weight, d.number) for d in parse_blend(mix)])
        for mix in run.mixes
        if mix.start < position
    ]


def manifest_versions(run: Run) -> tuple[tuple[int, Run], ...]:
    """Return the first position of each era and the run during it; each switch begins an era.

    A removal takes effect at the switch to the manifest that contains it.
    """
    if run.followed is None:
        return ((0, run),)
    starts = [next(mixes).start for _, mixes in groupby(run.mixes, key=lambda mix: mix.data)]
    return tuple((start, before_later_switches(run, start)) for start in starts)


def before_later_switches(run: Run, position: int) -> Run:
    """Return a run without the switches after a position."""
    index = bisect_right(run.mixes, position, key=lambda mix: mix.start) - 1
    data = run.mixes[index].data
    later = run.mixes[index + 1 :]
    same = next((i for i, mix in enumerate(later) if mix.data != data), len(later))
    return replace(run, mixes=run.mixes[: index + 1 + same])


def numbers_of(run: Run) -> dict[str, int]:
    """Return the manifest numbers that the last mix of a run reads, by folder of the dataset."""
    return {
        str(data.directory): data.number
        for data in parse_blend(run.mixes[-1])
        if data.number is not None
    }


def switch_version(run: Run, position: int, *, numbers: Mapping[str, int]) -> Run:
    """Return a run that reads other manifest numbers from a position on, first all text once.

    If the numbers only add removals and no text, weights and draws stay unchanged.

    Args:
        run: a run with numbers and without later switches.
        position: the number of samples before the switch.
        numbers: the manifest numbers of all its datasets, by folder.

    Raises:
        UserError: a dataset no longer exists, or its new shards do not fit the scatters.
    """
    current = before_later_switches(run, position)
    earlier = tuple(mix for mix in run.mixes if mix.start < position)
    force = next(mix for mix in reversed(current.mixes) if mix.start <= position)
    data = tuple(str(entry.at(numbers[str(entry.directory)])) for entry in parse_blend(force))
    before = {stream.name for stream in open_mixture(current.mixes, stride=1).streams}
    mix = Blend(start=position, data=data)
    sampler = _sampler(run, (*earlier, mix))
    if set(sampler.names) - before:
        stages = stages_until_seen(sampler, list(_groups(sampler, mix)), start=position)
        mixes = tuple(replace(mix, start=each.start, weights=each.weights) for each in stages)
    else:
        planned = (other for other in current.mixes if other.start > position)
        rest = (replace(other, data=data) for other in planned)
        mixes = (replace(mix, weights=force.weights), *rest)
    return replace(run, mixes=(*earlier, *mixes))


def _sampler(run: Run, mixes: Sequence[Blend]) -> Sampler:
    """Return a sampler of all streams, for counting the draws before the last mix begins."""
    mixture = open_mixture(mixes, stride=run.window.stride)
    return Sampler(
        mixture.streams,
        seed=run.seed,
        num_scatters=run.scatters,
        window=run.window,
        stages=mixture.stages,
    )


def _groups(sampler: Sampler, mix: Blend) -> Iterator[Group]:
    """Yield the streams and the weight of each of the data; one group if none has a weight."""
    entries = parse_blend(mix)
    weights = dict.fromkeys(entry.weight for entry in entries)
    parts = [entries] if weights == {None: None} else [[entry] for entry in entries]
    for part in parts:
        weight = 1 if part[0].weight is None else part[0].weight
        named = [i for i, s in enumerate(sampler.streams) if any(e.names(s) for e in part)]
        if weight and named:
            yield Group(share=Fraction(str(weight)), streams=tuple(named))


def check_can_follow(run: Run) -> None:
    """Check that a run can follow newer manifests without conflict with other changes of its mix.

    Raises:
        UserError: the data are published, change at given positions, or have capped epochs.
    """
    published = [str(data) for mix in run.mixes for data in parse_blend(mix) if data.published]
    if published:
        raise UserError(
            f"--follow takes newer manifests out of a folder, and {published[0]} is published: a "
            "run reads the commit that it began with. Leave --follow out, or follow a folder."
        )
    if len(run.mixes) > 1:
        raise UserError(
            "--follow changes the data as manifests come, and --data-from at given positions: "
            "give one of them."
        )
    if run.max_epochs:
        raise UserError(
            "--follow reads text that nobody knows yet, so that --max-epochs cannot be checked: "
            "leave it out."
        )
