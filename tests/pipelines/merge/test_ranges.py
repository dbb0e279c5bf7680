import pytest

from pipelines.merge.ranges import choose_cut


@pytest.mark.parametrize(
    ("segments", "shards", "here", "there"),
    [
        (1491, 512, 1, 16),  # 200 GB
        (22_352, 2048, 32, 32),  # 3 TB
        (651_931, 65_536, 256, 256),  # 100 TB
        (10, 3, 1, 1),
        (9, 0, 1, 1),
    ],
)
def test_a_cut_follows_from_segments_and_shards(
    segments: int, shards: int, here: int, there: int
) -> None:
    for remote, cut in ((False, here), (True, there)):
        assert choose_cut(segments, shards, rows=50_000 * segments, remote=remote) == cut
