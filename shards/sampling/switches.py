"""Switches of a run to newer manifests of its datasets.

    --data DIR ── resolve_versions ──▶ blend from 0 on: DIR@1
                                         │
    position, {DIR: 2} ─ switch_version ─▶ blends from the position on: DIR@2, weights by stream

A switch changes the manifest numbers of the data, beginning at its position. It may add several
blends of the same data, one after another, until all text has been seen once.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import groupby

from shards.errors import UserError
from shards.manifest import read_manifest
from shards.sampling.mixture import Blend, WeightedData, open_mixture, parse_blend, parse_data
from shards.sampling.plan import SamplingPlan
from shards.sampling.sampler import Sampler
from shards.sampling.unseen import StreamGroup, stages_until_seen


def resolve_versions(plan: SamplingPlan) -> SamplingPlan:
    """Return the plan with the current manifest number added to all data that have no number.

    Raises:
        UserError: there is no such dataset.
    """
    return replace(plan, mixes=tuple(_resolve_blend(blend) for blend in plan.mixes))


def _resolve_blend(blend: Blend) -> Blend:
    numbered = (
        data if data.number is not None else data.at(read_manifest(data.directory).number)
        for data in parse_blend(blend)
    )
    return replace(blend, data=tuple(map(str, numbered)))


def resume_plan(given: SamplingPlan, saved: SamplingPlan) -> SamplingPlan:
    """Return the given plan with the manifest numbers and the switches of the saved plan.

    The datasets may be in different folders now. If the data differ in anything else, the data of
    the given plan are kept, with numbers added.

    Raises:
        UserError: there is no such dataset.
    """
    first, *later = given.mixes
    saved_blends = {blend.start: blend for blend in saved.mixes}
    base = saved_blends[0]
    if saved.followed is None or _relocate(first, base, base=base) is None:
        blends = (_relocate(blend, saved_blends.get(blend.start)) or blend for blend in given.mixes)
        return resolve_versions(replace(given, mixes=tuple(blends)))
    until = later[0].start if later else None
    switches = (blend for blend in saved.mixes if until is None or blend.start < until)
    followed = (_relocate(first, blend, base=base) for blend in switches)
    known = tuple(blend for blend in followed if blend is not None)
    return resolve_versions(replace(given, mixes=(*known, *later), followed=saved.followed))


def _relocate(given: Blend, saved: Blend | None, *, base: Blend | None = None) -> Blend | None:
    """Return a saved blend with the folders of a given blend; None if the data of the two differ.

    If there is a `base`, a number in `given` must equal that in `base`; otherwise it is kept.
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


def min_common_version(plans: Sequence[SamplingPlan]) -> SamplingPlan:
    """Return the plan with the lowest number of each dataset, which all nodes can read."""
    blends = []
    for of_nodes in zip(*(plan.mixes for plan in plans), strict=True):
        columns = zip(*(_parsed(blend.data) for blend in of_nodes), strict=True)
        lowest = (min(column, key=lambda data: data.number or 0) for column in columns)
        blends.append(replace(of_nodes[0], data=tuple(map(str, lowest))))
    return replace(plans[0], mixes=tuple(blends))


def same_until(plan: SamplingPlan, other: SamplingPlan, position: int) -> bool:
    """Return whether two plans have the same blends before a position; folders may differ."""
    return _content(plan, position) == _content(other, position)


def _content(plan: SamplingPlan, position: int) -> list[object]:
    return [
        (
            blend.start,
            dict(blend.weights),
            [(d.source, d.weight, d.number) for d in parse_blend(blend)],
        )
        for blend in plan.mixes
        if blend.start < position
    ]


def manifest_versions(plan: SamplingPlan) -> tuple[tuple[int, SamplingPlan], ...]:
    """Return the position of each switch, with the plan that holds until the next switch.

    A removal takes effect at the switch to the manifest that contains it.
    """
    if plan.followed is None:
        return ((0, plan),)
    starts = [next(blends).start for _, blends in groupby(plan.mixes, key=lambda blend: blend.data)]
    return tuple((start, before_later_switches(plan, start)) for start in starts)


def before_later_switches(plan: SamplingPlan, position: int) -> SamplingPlan:
    """Return a copy of a plan that lacks all switches after a position."""
    index = bisect_right(plan.mixes, position, key=lambda blend: blend.start) - 1
    data = plan.mixes[index].data
    later = plan.mixes[index + 1 :]
    same = next((i for i, blend in enumerate(later) if blend.data != data), len(later))
    return replace(plan, mixes=plan.mixes[: index + 1 + same])


def manifest_numbers(plan: SamplingPlan) -> dict[str, int]:
    """Return the manifest numbers that the last blend of a plan reads, by folder of the dataset."""
    return {
        str(data.directory): data.number
        for data in parse_blend(plan.mixes[-1])
        if data.number is not None
    }


def switch_version(
    plan: SamplingPlan, position: int, *, numbers: Mapping[str, int]
) -> SamplingPlan:
    """Return a plan that switches to new manifest numbers at a position; unseen text comes first.

    If the numbers only add removals and no text, weights and draws stay unchanged.

    Args:
        plan: a plan with numbers and without later switches.
        position: the number of samples before the switch.
        numbers: the manifest numbers of all datasets of the plan, by folder.

    Raises:
        UserError: a dataset no longer exists, or its new shards do not fit the scatters.
    """
    current = before_later_switches(plan, position)
    earlier = tuple(blend for blend in plan.mixes if blend.start < position)
    active = next(blend for blend in reversed(current.mixes) if blend.start <= position)
    data = tuple(str(entry.at(numbers[str(entry.directory)])) for entry in parse_blend(active))
    before = {stream.name for stream in open_mixture(current.mixes, stride=1).streams}
    blend = Blend(start=position, data=data)
    sampler = _sampler(plan, (*earlier, blend))
    if set(sampler.names) - before:
        stages = stages_until_seen(sampler, list(_groups(sampler, blend)), start=position)
        blends = tuple(replace(blend, start=each.start, weights=each.weights) for each in stages)
    else:
        rest = (replace(each, data=data) for each in current.mixes if each.start > position)
        blends = (replace(blend, weights=active.weights), *rest)
    return replace(plan, mixes=(*earlier, *blends))


def _sampler(plan: SamplingPlan, blends: Sequence[Blend]) -> Sampler:
    """Return a sampler of all streams, for counting the draws before the last blend begins."""
    mixture = open_mixture(blends, stride=plan.window.stride)
    return Sampler(
        mixture.streams,
        seed=plan.seed,
        num_scatters=plan.scatters,
        window=plan.window,
        stages=mixture.stages,
    )


def _groups(sampler: Sampler, blend: Blend) -> Iterator[StreamGroup]:
    """Yield a group of streams for each of the data, or one group if the data have no weights."""
    entries = parse_blend(blend)
    weights = dict.fromkeys(entry.weight for entry in entries)
    parts = [entries] if weights == {None: None} else [[entry] for entry in entries]
    for part in parts:
        weight = 1 if part[0].weight is None else part[0].weight
        named = [i for i, s in enumerate(sampler.streams) if any(e.includes(s) for e in part)]
        if weight and named:
            yield StreamGroup(share=Fraction(str(weight)), streams=tuple(named))


def check_can_follow(plan: SamplingPlan) -> None:
    """Check that a run can follow newer manifests: nothing else may change its data.

    Raises:
        UserError: the data are published, change at given positions, or have capped epochs.
    """
    published = [str(data) for blend in plan.mixes for data in parse_blend(blend) if data.published]
    if published:
        raise UserError(
            f"--follow reads newer manifests from a folder, but {published[0]} is published: a run "
            "reads the commit that it started with. Omit --follow, or give a folder."
        )
    if len(plan.mixes) > 1:
        raise UserError(
            "--follow changes the data when a manifest appears, --data-from at given positions: "
            "give only one of them."
        )
    if plan.max_epochs:
        raise UserError(
            "--follow reads text that does not exist yet, so --max-epochs cannot be checked: omit "
            "it."
        )
