"""Switches to newer manifests of growing datasets, which all ranks make at the same step.

    checkpoint ─▶ numbers on each node ─▶ the highest that is whole on all ─▶ opened on all
         ─▶ run.json ─▶ next step

Whether to switch is decided once for each position and recorded before the step that follows, so
that a run that was killed repeats it, whatever has come meanwhile.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from pathlib import Path

from shards.errors import UserError
from shards.manifest import Manifest, read_manifest
from shards.mixture import parse_mix
from shards.place import NodeShare, require
from shards.reader import Dataset
from shards.run import NAME, Run
from shards.storage.remote import AnyPath, any_path
from shards.switches import (
    UNSEEN,
    agreed,
    before_later_switches,
    check_can_follow,
    numbers_of,
    pinned,
    resumed,
    same_until,
    switched,
)
from trainer.checkpoint import Checkpoint
from trainer.config import Config, Settings
from trainer.data import RunData, brought, open_data
from trainer.distributed import CollectiveError, Ranks
from trainer.loader import scatters_read


@dataclass(eq=False)
class DatasetWatcher:
    """What is decided of a run's data: switches so far, and whether more may come."""

    config: Config
    """Its run has all switches that are decided."""
    _: KW_ONLY
    folder: Path | None
    """Where the run is saved."""
    ranks: Ranks
    say: Callable[[str], None]

    def __post_init__(self) -> None:
        self._run, self._settings = self.config.run, self.config.settings
        self._opened: RunData | None = None
        self._said: set[str] = set()
        self._is_over = False

    def run_before(self, end: int) -> Run:
        """Return the run with the switches that lie before a position."""
        return before_later_switches(self._run, end - 1)

    def save(self) -> None:
        """Record what is decided in the run's folder; all ranks call this."""
        if self.folder is not None:
            path = self.folder / NAME
            self.ranks.run_on_rank0(lambda: self._run.save(path))

    def open(self, run: Run) -> RunData:
        """Return the data of a run after a switch, opened once; all ranks call this.

        Raises:
            CollectiveError: they cannot be read on some rank, or do not fit the model or the ranks.
        """
        if self._opened is None or self._opened.run.mixes != run.mixes:
            self._opened = self.ranks.run_on_all_ranks(lambda: self._open_here(run))
        return replace(self._opened, run=run)

    def _open_here(self, run: Run) -> RunData:
        data = open_data(replace(self.config, run=run))
        data.check_layout(self.ranks)
        return data

    def poll(self, data: RunData, position: int) -> None:
        """Decide whether newer manifests are read from a position on, unless that is decided."""
        if not self._settings.follow or self._is_over or position <= (self._run.followed or 0):
            return
        newer = self._newer(data, position)
        self._run = replace(data.run if newer is None else newer.run, followed=position)
        self.save()

    def _newer(self, data: RunData, position: int) -> RunData | None:
        """Return the data with a switch at a position, None if there is nothing newer to take."""
        current = numbers_of(data.run)
        numbers = self._numbers_everywhere(data, current)
        if numbers == current:
            return None
        shown = ", ".join(f"{directory}@{number}" for directory, number in numbers.items())
        try:
            run = self.ranks.run_on_all_ranks(
                lambda: switched(data.run, position, numbers=numbers, weight=UNSEEN)
            )
        except CollectiveError as error:
            self._say_once(f"{shown} is not taken: {error}")
            return None
        try:
            return self.open(run)
        except CollectiveError as error:
            self._is_over = True
            self._say_once(
                f"{shown} cannot be read, and the run does not follow its data any more: {error} "
                "Put that right, stop the run, and start it again: it resumes and follows. Until "
                "then it continues with what it has."
            )
            return None

    def _numbers_everywhere(self, data: RunData, current: Mapping[str, int]) -> dict[str, int]:
        """Return the highest manifest number of each dataset that is whole on all nodes.

        The first rank of a node looks for all of it.
        """
        lineages = {str(each.directory): each.manifest.lineage for each in data.datasets}
        share = self._share(data.run)
        looks = current.items() if self.ranks.local_rank == 0 else ()
        seen_by_nodes = self.ranks.gather(
            {
                directory: _highest_whole(directory, number, lineages[directory], share)
                for directory, number in looks
            }
        )
        newest = {}
        for directory, number in current.items():
            seen = [of_node[directory] for of_node in seen_by_nodes if of_node]
            problems = [view for view in seen if isinstance(view, str)]
            if problems:
                self._say_once(f"no newer text for now: {problems[0]}")
                return dict(current)
            numbers = [view for view in seen if isinstance(view, int)]
            if len(numbers) < len(seen):
                self._stop_following(directory, number)
                return dict(current)
            newest[directory] = min(numbers)
        return newest

    def _share(self, run: Run) -> NodeShare:
        """Return what the ranks of this node read of the data."""
        ranks = self.ranks.ranks_of_node()
        scatters = {
            scatter
            for batch in run.batches
            for rank in ranks
            for scatter in scatters_read(
                batch.size, run.scatters, world=self.ranks.world, rank=rank
            )
        }
        return NodeShare(scatters=tuple(sorted(scatters)), num_scatters=run.scatters)

    def _stop_following(self, directory: str, number: int) -> None:
        self._is_over = True
        self._say_once(
            f"{directory} was overwritten or compacted since it was opened as "
            f"{directory}@{number}: the run does not follow it any more, and cannot resume later, "
            "because its generations are gone. Start a new run on the new dataset from the weights "
            "of its last checkpoint: --init-from RUN/step-N --save OTHER. Until then it continues "
            "with the files that it has."
        )

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.say(text)


def _highest_whole(directory: str, number: int, lineage: str, share: NodeShare) -> int | str | None:
    """Return the highest manifest number whose files are there, at least the one that is read.

    Or why the manifest cannot be read; None: it is of another dataset.
    """
    path = any_path(directory)
    try:
        manifest = read_manifest(path)
    except (UserError, OSError) as error:
        return str(error)
    if manifest.lineage != lineage:
        return None
    newer = range(manifest.number, number, -1)
    return next((n for n in newer if _is_whole(path, manifest, n, share)), number)


def _is_whole(path: AnyPath, manifest: Manifest, number: int, share: NodeShare) -> bool:
    try:
        require(Dataset(path, manifest.as_of(number)), share)
    except (UserError, OSError):
        return False
    return True


def run_of(given: Run, settings: Settings, *, checkpoint: Checkpoint | None, ranks: Ranks) -> Run:
    """Return a run with manifest numbers, and with the switches that were decided before.

    All ranks call this. A folder may hold decisions that are later than its checkpoint.

    Raises:
        UserError: data are missing, or a run that follows them cannot.
    """
    if settings.follow:
        ranks.run_on_all_ranks(lambda: check_can_follow(given))
    if checkpoint is None or "run" not in checkpoint.state:  # the latter: of a former version
        here = brought(given, ranks)
        decided = ranks.run_on_all_ranks(lambda: pinned(here))
    else:
        saved = _saved_run(checkpoint, ranks)
        here = brought(given, ranks, saved=saved)
        decided = ranks.run_on_all_ranks(lambda: _resumed(here, saved, checkpoint.folder))
    run = agreed(ranks.gather(decided))
    return replace(run, followed=0) if settings.follow and run.followed is None else run


def _resumed(given: Run, saved: Run, folder: Path) -> Run:
    """Return a run as it goes on from a checkpoint.

    Raises:
        UserError: a manifest that it read is not there any more.
    """
    run = resumed(given, saved)
    read = cache(read_manifest)
    for data in (data for mix in run.mixes for data in parse_mix(mix)):
        manifest = read(data.directory)
        try:
            manifest.as_of(data.number or 0)
        except UserError as error:
            raise UserError(
                f"this run cannot resume, because {data.dataset}, which it was trained on, is "
                f"gone: {error} Bring the dataset back as it was, or start a new run on the "
                f"present one from the weights: --init-from {folder} --save OTHER."
            ) from error
    return run


def _saved_run(checkpoint: Checkpoint, ranks: Ranks) -> Run:
    """Return the run of a checkpoint, with the later switches that its folder records."""
    saved = ranks.run_on_all_ranks(lambda: checkpoint.part("run", Run))
    position = int(checkpoint.state["loader"]["position"])
    path = checkpoint.folder.parent / NAME
    recorded = ranks.run_on_rank0(lambda: Run.load(path) if path.is_file() else None)
    if recorded is None or recorded.followed is None:
        return saved
    return recorded if same_until(recorded, saved, position) else saved
