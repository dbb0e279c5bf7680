import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shards.maintenance import place
from shards.maintenance.place import NodeShare, check_files_present
from shards.reader import Dataset
from shards.sampling.mixture import Blend
from shards.sampling.plan import BatchSize, SamplingPlan
from shards.sampling.switches import (
    before_later_switches,
    manifest_numbers,
    manifest_versions,
    min_common_version,
    resolve_versions,
    resume_plan,
    same_until,
    switch_version,
)
from shards.sampling.trace import Tracer
from tests.shards.datasets import remove
from tests.trainer.corpus import build, grow


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("original") / "data"
    build(directory)
    grow(directory)
    grow(directory, shards=1)
    grow(directory, sources=("web", "notes"))
    return directory


@pytest.fixture
def data(original: Path, tmp_path: Path) -> Path:
    """A dataset with four generations, the third of which has only one shard."""
    return Path(shutil.copytree(original, tmp_path / "data"))


def run_on(*data: str, scatters: int = 1) -> SamplingPlan:
    blends = (Blend(start=0, data=data),)
    batches = (BatchSize(step=0, size=4),)
    return SamplingPlan(
        mixes=blends, batches=batches, scatters=scatters, length=32, seed=5, followed=0
    )


def drawn(run: SamplingPlan, end: int) -> list[tuple[str, int, int, int]]:
    """Return the stream, shard, window and epoch at each position."""
    sampler = run.sampler()
    windows = sampler.draw(range(end))
    columns = (windows.stream, windows.shard, windows.window, windows.epoch)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [(sampler.names[stream], *rest) for stream, *rest in rows]


def followed(run: SamplingPlan, data: Path, *positions: int) -> SamplingPlan:
    """Return the plan after a switch to the next manifest at each of these positions."""
    for number, position in enumerate(positions, start=2):
        run = switch_version(run, position, numbers={str(data): number})
    return run


@pytest.mark.parametrize("scatters", [1, 4])
def test_before_a_switch_nothing_changes(data: Path, scatters: int) -> None:
    runs = [run_on(f"{data}@1", scatters=scatters)]
    for number, position in ((2, 40), (3, 64), (4, 100)):
        runs.append(switch_version(runs[-1], position, numbers={str(data): number}))
        assert drawn(runs[-1], position) == drawn(runs[-2], position)
        assert drawn(runs[-1], position + 40) != drawn(runs[-2], position + 40)
        earlier = before_later_switches(runs[-1], position - 1)
        assert drawn(earlier, position) == drawn(runs[-2], position)
        assert earlier.mixes == runs[-2].mixes[: len(earlier.mixes)]
    # Older streams continue where they were, so each is read in the order that it would have alone.
    for stream in ("00000000/web", "00000000/notes"):
        alone = [window for window in drawn(runs[0], 60) if window[0] == stream]
        grown = [window for window in drawn(runs[-1], 200) if window[0] == stream]
        common = min(len(alone), len(grown))
        assert common > 20
        assert scatters > 1 or grown[:common] == alone[:common]


@pytest.mark.slow
def test_datasets_keep_their_shares(data: Path, tmp_path: Path) -> None:
    build(tmp_path / "other", seed=1)
    run = run_on(f"{data}@1=0.3", f"{tmp_path / 'other'}@1=0.7")
    numbers = {str(data): 2, str(tmp_path / "other"): 1}
    assert manifest_numbers(run) == {**numbers, str(data): 1}
    run = switch_version(run, 40, numbers=numbers)
    windows = drawn(run, max(1000, run.mixes[-1].start))
    other = [name.startswith("00000001/") for name, *_ in windows]
    for first in range(0, 1000, 100):
        assert np.mean(other[first : first + 100]) == pytest.approx(0.7, abs=0.03)
    counts = Counter(window for window in windows[: run.mixes[-1].start] if window[3] == 0)
    assert len(counts) == sum(run.sampler().partitions.windows_of_streams)


def test_a_generation_of_one_shard_is_common_to_all_nodes(data: Path, tmp_path: Path) -> None:
    run = followed(run_on(f"{data}@1", scatters=4), data, 40, 80)
    sampler = run.sampler()
    assert sampler.partitions.common.tolist() == [False, False, False, True]
    common = [window for window in drawn(run, 600) if window[0] == "00000003/web"]
    assert len(set(common[:4])) == 4
    share = NodeShare(scatters=(2,), num_scatters=4)
    for number in (2, 3):
        list(place.place(Dataset.open(f"{data}@{number}"), share, to=tmp_path / "disk"))
    placed = place.place(Dataset.open(f"{data}@4"), share, to=tmp_path / "disk")
    copied = {path.partition("/")[0] for path, _, is_copied in placed if is_copied}
    assert copied == {"g0004-00"}  # copied again, but only the new generation
    check_files_present(Dataset.open(f"{tmp_path / 'disk'}@3"), share)
    names = {path.name for path in (tmp_path / "disk" / "g0003-00" / "web").glob("*.bin")}
    assert names == {"00000.bin", "validation-00000.bin"}


@pytest.mark.parametrize("position", [0, 1, 37, 100, 137])
def test_a_removal_changes_no_draw(data: Path, position: int) -> None:
    """A removal may also be in the middle of a planned stage, which still reads windows once."""
    remove(data, [("web", "train", 0, 3)], number=5)
    remove(data, [("web", "train", 0, 4)], number=6)
    run = switch_version(run_on(f"{data}@3"), 0, numbers={str(data): 4})
    total = sum(run.sampler().partitions.windows_of_streams)
    after = run
    for number in (5, 6):
        start = 5 + position + number
        after = switch_version(after, start, numbers={str(data): number})
    assert len(set(drawn(after, total))) == total
    assert drawn(after, total + 300) == drawn(run, total + 300)
    assert manifest_numbers(after) == {str(data): 6}


def test_a_trace_opens_a_dataset_once_for_all_switches(data: Path) -> None:
    """A run may have hundreds of switches, and each open dataset uses a file descriptor."""
    descriptors = Path("/proc/self/fd")
    run = run_on(f"{data}@1")
    for position in range(2, 24, 2):
        number = 4 + position // 2
        remove(data, [("web", "train", number % 4, number // 4)], number=number)
        run = switch_version(run, position, numbers={str(data): number})
    before = len(list(descriptors.iterdir()))
    tracer = Tracer(run)
    numbers = [
        tracer.manifest_number(sample) for step in range(20) for sample in tracer.samples(step)
    ]
    assert numbers[:24:2] == [1, *range(5, 16)]
    assert len(list(descriptors.iterdir())) - before <= 2


def test_a_run_is_resumed_at_the_numbers_that_it_had(data: Path, tmp_path: Path) -> None:
    given = replace(run_on(f"{data}=1"), followed=None)
    assert resolve_versions(given).mixes[0].data == (f"{data}@4=1",)
    saved = replace(given, mixes=(Blend(start=0, data=(f"{data}@2=1",)),))
    assert resume_plan(given, saved) == saved
    # The dataset may have moved, but a number that the user gives explicitly counts.
    moved = Path((tmp_path / "moved").resolve())
    data.rename(moved)
    there = replace(given, mixes=(Blend(start=0, data=(f"{moved}=1",)),))
    assert resume_plan(there, saved).mixes[0].data == (f"{moved}@2=1",)
    explicit = replace(given, mixes=(Blend(start=0, data=(f"{moved}@3=1",)),))
    assert resume_plan(explicit, saved) == explicit
    other = replace(given, mixes=(Blend(start=0, data=(f"{moved}=2",)),))
    assert resume_plan(other, saved).mixes[0].data == (f"{moved}@4=2",)


def test_a_run_is_resumed_with_its_switches(data: Path) -> None:
    given = replace(run_on(str(data)), followed=None)
    saved = replace(followed(run_on(f"{data}@1"), data, 40, 60), followed=60)
    assert resume_plan(given, saved) == saved
    later = Blend(start=50, data=(f"{data}@4:web",))
    assert resume_plan(replace(given, mixes=(*given.mixes, later)), saved).mixes[-1] == later
    unlike = replace(given, mixes=(Blend(start=0, data=(f"{data}@2",)),))
    assert resume_plan(unlike, saved) == unlike
    assert [start for start, _ in manifest_versions(saved)] == [0, 40, 60]
    assert [manifest_numbers(version)[str(data)] for _, version in manifest_versions(saved)] == [
        1,
        2,
        3,
    ]
    assert same_until(saved, before_later_switches(saved, 59), 60)
    assert not same_until(saved, before_later_switches(saved, 59), 61)


def test_nodes_agree_on_the_lowest_numbers(data: Path) -> None:
    runs = [run_on(f"{data}@{n}", f"{data}@{m}:web") for n, m in ((3, 1), (2, 4))]
    assert min_common_version(runs).mixes[0].data == (f"{data}@2", f"{data}@1:web")
