"""What a run that follows its data decides, without the steps in between."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from shards.manifest import read_manifest, write_manifest
from shards.run import Run
from tests.trainer.alone import ALONE, configured
from tests.trainer.corpus import SHAPE, SIZE, build, grow
from trainer.checkpoints.disk import find_disk
from trainer.data import RunData, open_data
from trainer.follow import NAME, Follower, run_of
from trainer.ranks import AgreedError


class Following:
    """A run of one process and what it says."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.folder = folder / "run"
        self.said: list[str] = []
        build(self.data)
        (folder / "model.json").write_text(json.dumps(SHAPE))
        config = configured(
            [
                *("--data", str(self.data), "--model", str(folder / "model.json"), "--follow"),
                *("--at-end", "wait", "--batch-size", "4", "--max-steps", "9"),
                *("--save", str(self.folder)),
            ]
        )
        run = run_of(config.run, config.settings, checkpoint=None, ranks=ALONE)
        self.config = replace(config, run=run)
        disk = find_disk(self.folder, ALONE)
        self.follower = Follower(self.config, disk=disk, ranks=ALONE, say=self.said.append)

    def start(self) -> RunData:
        return open_data(self.config)

    def numbers(self, end: int) -> list[str]:
        """Return the manifest numbers that are read before a position, one for each mix."""
        run = self.follower.run_before(end)
        return [mix.data[0].rpartition("@")[2] for mix in run.mixes]

    def spoil(self) -> None:
        """Let a generation come whose vocabulary is too large for the model."""
        grow(self.data)
        manifest = read_manifest(self.data)
        tokenizer = replace(manifest.tokenizer, vocabulary_size=2 * SIZE)
        write_manifest(self.data, replace(manifest, tokenizer=tokenizer))


@pytest.fixture
def following(tmp_path: Path) -> Following:
    return Following(tmp_path)


def test_data_that_do_not_fit_are_not_recorded(following: Following) -> None:
    """The run goes on with what it has, and says so once."""
    data = following.start()
    following.spoil()
    following.follower.look(data, 4)
    assert set(following.numbers(9)) == {"1"}
    recorded = Run.load(following.folder / NAME)
    assert recorded.mixes == data.run.mixes
    assert recorded.followed == 4
    following.follower.look(data, 8)
    (said,) = following.said
    assert f"{following.data}@2 cannot be read" in said
    assert "whose vocabulary has 256 ids" in said
    with pytest.raises(AgreedError, match=r"@2 cannot be read, and the run does not follow"):
        following.follower.look_again(data, 8, size=4)


def test_data_that_are_not_here_are_not_taken_over(following: Following) -> None:
    data = following.start()
    grow(following.data)
    following.follower.look(data, 4)
    decided = following.follower.run_before(9)
    again = Follower(following.config, disk=None, ranks=ALONE, say=following.said.append)
    (following.data / "g0002-00" / "web" / "00002.bin").unlink()
    with pytest.raises(AgreedError, match=r"00002\.bin"):
        again.open(decided)
