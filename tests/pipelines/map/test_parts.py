import pytest

from pipelines.corpus.part import corpus_fraction
from pipelines.inputs.files import InputFile
from pipelines.inputs.split import Split, split_file
from pipelines.map.parts import describe_ranges, shares_for, splits_of_part


def corpus(*sizes: int, split_bytes: int = 100) -> dict[InputFile, list[Split]]:
    files = [
        InputFile(
            source="s", path=f"/{number}", relative=f"{number}.json", bytes=size, mtime_ns=number
        )
        for number, size in enumerate(sizes)
    ]
    return {file: split_file(file, split_bytes) for file in files}


@pytest.mark.parametrize("num", [1, 2, 3, 5, 7, 64])
def test_shares_cover_the_corpus_once_and_are_runs_of_it(num: int) -> None:
    chains = corpus(1000, 90, 2350, 40)
    every = [split for chain in chains.values() for split in chain]
    by_share = [splits_of_part(chains, [f"{index}/{num}"]) for index in range(1, num + 1)]
    assert [split for share in by_share for split in share] == every
    if num < 8:
        sizes = [sum(split.end - split.start for split in share) for share in by_share]
        assert max(sizes) - min(sizes) <= 200


def test_shares_of_different_numbers_add_up() -> None:
    chains = corpus(1000, 90, 2350, 40)
    every = [split for chain in chains.values() for split in chain]
    some = splits_of_part(chains, ["1/2"])
    assert some + splits_of_part(chains, ["3/4", "8/8", "7/8"]) == every
    assert corpus_fraction(["1/2"]) == 0.5
    assert corpus_fraction(["1/2", "3/4"]) == 0.75
    assert corpus_fraction([]) == corpus_fraction(["merge"]) == corpus_fraction(["1/1", "1/2"]) == 1


def test_missing_splits_are_named_with_the_shares_that_hold_them() -> None:
    chains = corpus(1000, 90, 2350, 40)
    every = [split for chain in chains.values() for split in chain]
    for part in ("3/4", "1/3,2/3", "1/1", "2/2"):
        missing = splits_of_part(chains, part.split(","))
        assert shares_for(chains, missing) == part
    named = shares_for(chains, [every[7]])
    assert every[7] in splits_of_part(chains, named.split(","))
    assert describe_ranges(every[:3]) == "s/0.json bytes 0 to 300"
    assert describe_ranges([every[0], every[2], every[-1]]) == (
        "s/0.json bytes 0 to 100, s/0.json bytes 200 to 300, s/3.json bytes 0 to 40"
    )
    assert describe_ranges(every[:20:2]).endswith(" and 2 more ranges")
