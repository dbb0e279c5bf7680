import pytest

from pipelines.corpus.part import corpus_fraction
from pipelines.process.parts import describe_ranges, items_of_part, shares_for
from pipelines.process.processor import ProcessItem
from pipelines.read.files import InputFile
from pipelines.read.split import split_file


def corpus(*sizes: int, split_bytes: int = 100) -> list[ProcessItem]:
    files = [
        InputFile(
            source="s", path=f"/{number}", relative=f"{number}.json", bytes=size, mtime_ns=number
        )
        for number, size in enumerate(sizes)
    ]
    splits = [split for file in files for split in split_file(file, split_bytes)]
    return [ProcessItem(name=str(number), splits=(split,)) for number, split in enumerate(splits)]


@pytest.mark.parametrize("num", [1, 2, 3, 5, 7, 64])
def test_shares_cover_the_corpus_once_and_are_runs_of_it(num: int) -> None:
    every = corpus(1000, 90, 2350, 40)
    by_share = [items_of_part(every, [f"{index}/{num}"]) for index in range(1, num + 1)]
    assert [task for share in by_share for task in share] == every
    if num < 8:
        sizes = [sum(task.size for task in share) for share in by_share]
        assert max(sizes) - min(sizes) <= 200


def test_shares_of_different_numbers_add_up() -> None:
    every = corpus(1000, 90, 2350, 40)
    some = items_of_part(every, ["1/2"])
    assert some + items_of_part(every, ["3/4", "8/8", "7/8"]) == every
    assert corpus_fraction(["1/2"]) == 0.5
    assert corpus_fraction(["1/2", "3/4"]) == 0.75
    assert corpus_fraction([]) == corpus_fraction(["merge"]) == corpus_fraction(["1/1", "1/2"]) == 1


def test_missing_splits_are_named_with_the_shares_that_hold_them() -> None:
    every = corpus(1000, 90, 2350, 40)
    for part in ("3/4", "1/3,2/3", "1/1", "2/2"):
        missing = items_of_part(every, part.split(","))
        assert shares_for(every, missing) == part
    named = shares_for(every, [every[7]])
    assert every[7] in items_of_part(every, named.split(","))
    splits = [split for task in every for split in task.splits]
    assert describe_ranges(splits[:3]) == "s/0.json bytes 0 to 300"
    assert describe_ranges([splits[0], splits[2], splits[-1]]) == (
        "s/0.json bytes 0 to 100, s/0.json bytes 200 to 300, s/3.json bytes 0 to 40"
    )
    assert describe_ranges(splits[:20:2]).endswith(" and 2 more ranges")
