"""Published datasets of a run: brought to every node before anything is read of them."""

from collections.abc import Callable

from shards.mixture import parse_mix
from shards.published import at_commit, fetch
from shards.run import Run
from shards.storage.hub import HubName
from trainer.ranks import Ranks


def brought(run: Run, ranks: Ranks, *, saved: Run | None = None) -> Run:
    """Return a run whose published datasets lie in the hub's cache on every node.

    All ranks call this. The first one decides which commit is read: the one that was read before,
    unless the run names a revision, else the newest. Then the first of each node fetches the files.

    Args:
        run: As it is given.
        ranks: Of the run.
        saved: The run as a checkpoint has it.

    Raises:
        AgreedError: A dataset cannot be fetched.
    """
    if not any(data.published for mix in run.mixes for data in parse_mix(mix)):
        return run
    read = _commits(saved)

    def decided(name: HubName) -> HubName:
        return at_commit(name if name.revision else read.get(name.repository, name))

    def moved(run: Run, where: Callable[[HubName], object]) -> Run:
        return run.with_data(lambda data: data.brought(where))

    pinned = ranks.gather(ranks.together(lambda: moved(run, decided) if ranks.is_first else run))[0]
    here = ranks.together(lambda: moved(pinned, fetch) if ranks.local_rank == 0 else None)
    return ranks.together(lambda: here or moved(pinned, fetch))


def _commits(saved: Run | None) -> dict[str, HubName]:
    """Return the commits that a run has read, by OWNER/NAME."""
    data = (each for mix in saved.mixes for each in parse_mix(mix)) if saved else ()
    names = (HubName.of_snapshot(str(each.directory)) for each in data)
    return {name.repository: name for name in names if name}
