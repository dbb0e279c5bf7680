"""Decides which manifests a run reads: at its start, when it resumes, and with --follow.

    checkpoint ─▶ manifest numbers on each rank ─▶ the highest that all ranks have
         ─▶ opened on all ranks ─▶ run.json ─▶ next step

The ranks decide once per position whether to switch to newer manifests. The decision is recorded
before the next step, so a run that was killed repeats it, even if newer data have arrived since.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache

from shards.errors import UserError
from shards.maintenance.place import NodeShare, check_files_present
from shards.manifest import Manifest, read_manifest
from shards.reader import Dataset
from shards.sampling.mixture import parse_blend
from shards.sampling.plan import NAME, SamplingPlan
from shards.sampling.switches import (
    before_later_switches,
    check_can_follow,
    manifest_numbers,
    min_common_version,
    resolve_versions,
    resume_plan,
    same_until,
    switch_version,
)
from shards.storage.remote import AnyPath, any_path
from trainer.checkpoint import Checkpoint
from trainer.config import TrainConfig
from trainer.data import RunData, fetch_published, open_data
from trainer.distributed import CollectiveError, Ranks
from trainer.loader import scatters_read


@dataclass(eq=False)
class DatasetWatcher:
    """Watches the datasets of a run, and decides when the run switches to newer manifests."""

    config: TrainConfig
    plan: SamplingPlan
    """The plan with all decided switches."""
    _: KW_ONLY
    ranks: Ranks

    def __post_init__(self) -> None:
        self._opened: RunData | None = None
        self._reported: set[str] = set()

    def plan_before(self, end: int) -> SamplingPlan:
        """Return the plan with only the switches before position `end`."""
        return before_later_switches(self.plan, end - 1)

    def save(self) -> None:
        """Write the decided switches to the run's folder; all ranks call this.

        Raises:
            CollectiveError: the file cannot be written.
        """
        if self.config.save is not None:
            path = self.config.save / NAME
            self.ranks.run_on_rank0(lambda: self.plan.save(path))

    def open(self, plan: SamplingPlan) -> RunData:
        """Return the data of a plan after a switch, opened only once; all ranks call this.

        Raises:
            CollectiveError: some rank cannot read the data, or the data do not fit the model or the
                ranks.
        """
        if self._opened is None or self._opened.plan.mixes != plan.mixes:
            self._opened = open_on_all_ranks(self.config, plan, self.ranks)
        return replace(self._opened, plan=plan)

    def poll(self, data: RunData, position: int, *, show: Callable[[str], None]) -> None:
        """Decide, once per position, whether the run reads newer manifests from that position.

        Args:
            data: the data that the run reads up to the position.
            position: the number of samples before the next step.
            show: a function that shows a line on the terminal; each reason why newer manifests are
                not used is shown once.
        """
        if not self.config.follow or position <= (self.plan.followed or 0):
            return
        plan = data.plan
        try:
            newer = self._newer(data, position)
            plan = plan if newer is None else self.open(newer).plan
        except CollectiveError as error:
            if (reason := str(error)) not in self._reported:
                self._reported.add(reason)
                show(f"no newer text is taken for now: {reason}")
        self.plan = replace(plan, followed=position)
        self.save()

    def _newer(self, data: RunData, position: int) -> SamplingPlan | None:
        """Return the plan with a switch at a position; None if there are no newer manifests.

        Raises:
            CollectiveError: a dataset cannot be read, or its newer shards do not fit.
        """
        plan, current = data.plan, manifest_numbers(data.plan)
        lineages = {str(each.directory): each.manifest.lineage for each in data.datasets}
        share = self._share(plan)

        def poll_here() -> dict[str, int]:
            return {
                directory: _newest_complete(directory, number, lineages[directory], share)
                for directory, number in current.items()
            }

        by_rank = self.ranks.gather(self.ranks.run_on_all_ranks(poll_here))
        numbers = {directory: min(each[directory] for each in by_rank) for directory in current}
        if numbers == current:
            return None
        return self.ranks.run_on_all_ranks(lambda: switch_version(plan, position, numbers=numbers))

    def _share(self, plan: SamplingPlan) -> NodeShare:
        """Return the part of the data that this rank reads."""
        rank, world = self.ranks.rank, self.ranks.world
        scatters = {
            scatter
            for batch in plan.batches
            for scatter in scatters_read(batch.size, plan.scatters, world=world, rank=rank)
        }
        return NodeShare(scatters=tuple(sorted(scatters)), num_scatters=plan.scatters)


def open_on_all_ranks(config: TrainConfig, plan: SamplingPlan, ranks: Ranks) -> RunData:
    """Return the opened data of a plan; all ranks call this.

    Raises:
        CollectiveError: some rank cannot read the data, or the data do not fit the model or the
            ranks.
    """

    def open_here() -> RunData:
        data = open_data(config, plan, config.shape)
        data.check_layout(ranks)
        return data

    return ranks.run_on_all_ranks(open_here)


def _newest_complete(directory: str, number: int, lineage: str, share: NodeShare) -> int:
    """Return the highest manifest number whose files are on this node, at least the current one.

    Args:
        directory: the dataset.
        number: the manifest number that the run reads.
        lineage: the lineage of that manifest.
        share: the part of the files that this rank needs.

    Raises:
        UserError: the manifest cannot be read, or has a different lineage.
    """
    path = any_path(directory)
    try:
        manifest = read_manifest(path)
    except OSError as error:
        raise UserError(str(error)) from error
    if manifest.lineage != lineage:
        raise UserError(
            f"{directory} was overwritten or compacted since it was opened as "
            f"{directory}@{number}, so the run cannot follow it, nor resume later: its generations "
            "are gone. Start a new run on the new dataset from the weights of its last checkpoint: "
            "--init-from RUN/step-N --save OTHER. Until then it continues with the files that it "
            "has."
        )
    newer = range(manifest.number, number, -1)
    return next((n for n in newer if _is_whole(path, manifest, n, share)), number)


def _is_whole(path: AnyPath, manifest: Manifest, number: int, share: NodeShare) -> bool:
    try:
        check_files_present(Dataset(path, manifest.as_of(number)), share)
    except (UserError, OSError):
        return False
    return True


def resolve_plan(
    config: TrainConfig, ranks: Ranks, *, checkpoint: Checkpoint | None
) -> SamplingPlan:
    """Return the plan of a command line with manifest numbers and the switches decided so far.

    All ranks call this. A run's folder may record decisions that are later than its checkpoint.

    Raises:
        UserError: data are missing, or the run cannot follow them.
    """
    given = config.sampling_plan()
    if config.follow:
        ranks.run_on_all_ranks(lambda: check_can_follow(given))
    saved = None if checkpoint is None else _saved_plan(checkpoint, ranks)
    here = fetch_published(given, ranks, saved=saved)

    def decide() -> SamplingPlan:
        if checkpoint is None or saved is None:
            return resolve_versions(here)
        return _resumed(here, saved, checkpoint)

    plan = min_common_version(ranks.gather(ranks.run_on_all_ranks(decide)))
    return replace(plan, followed=0) if config.follow and plan.followed is None else plan


def _resumed(given: SamplingPlan, saved: SamplingPlan, checkpoint: Checkpoint) -> SamplingPlan:
    """Return the plan that continues from a checkpoint.

    Raises:
        UserError: a manifest that the run has read does not exist any more.
    """
    plan = resume_plan(given, saved)
    read = cache(read_manifest)
    for data in (data for mix in plan.mixes for data in parse_blend(mix)):
        manifest = read(data.directory)
        try:
            manifest.as_of(data.number or 0)
        except UserError as error:
            raise UserError(
                f"this run cannot resume, because {data.dataset}, which it was trained on, is "
                f"gone: {error} Restore the dataset, or start a new run on the "
                f"present one from the weights: --init-from {checkpoint.folder} --save OTHER."
            ) from error
    return plan


def _saved_plan(checkpoint: Checkpoint, ranks: Ranks) -> SamplingPlan:
    """Return the plan recorded in a checkpoint, with the later switches in the run's folder."""
    saved = ranks.run_on_all_ranks(lambda: checkpoint.part("run", SamplingPlan))
    path = checkpoint.folder.parent / NAME
    recorded = ranks.run_on_rank0(lambda: SamplingPlan.load(path) if path.is_file() else None)
    if recorded is None or recorded.followed is None:
        return saved
    position = int(checkpoint.state["loader"]["position"])
    return recorded if same_until(recorded, saved, position) else saved
