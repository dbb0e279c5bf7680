"""Remarks on a listing: files that are left out, missing or present twice.

Each remark is one line of a log, however many files it covers.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from pipelines.read.input_file import NAMES_SHOWN, InputFile, common_start, shown, some_of
from pipelines.read.names import advice_on, advice_on_names, ending_of, stem_of
from shards.commands.output import quantity

_MAX_ENDINGS, _MAX_NUMBERS = 8, 20

_NUMBERED = re.compile(r"(.*?)(\d+)[-_]of[-_](\d+)(?!\d)(.*)", re.DOTALL)


def left_out(unmatched: Sequence[str], hidden: Sequence[str] = ()) -> Iterator[str]:
    """Yield a line on files whose names do not match, and a line on hidden files.

    Args:
        unmatched: Paths of files.
        hidden: Paths of files, and of folders with a trailing slash.
    """
    if unmatched:
        counts = Counter(ending_of(path).lower() for path in unmatched).most_common()
        kinds = [f"{number:,} {ending or 'without an extension'}" for ending, number in counts]
        more = f" and {len(kinds) - _MAX_ENDINGS} more extensions" * (len(kinds) > _MAX_ENDINGS)
        folder, names = _below_one_folder(unmatched)
        yield (
            f"{quantity(len(unmatched), 'file')} {folder}not read: "
            f"{', '.join(kinds[:_MAX_ENDINGS])}{more} ({names})."
            f"{advice_on(unmatched)}{advice_on_names(unmatched)}"
        )
    if hidden:
        folder, names = _below_one_folder(hidden)
        yield (
            f"{len(hidden):,} hidden or unfinished file{'s or folders' * (len(hidden) != 1)} "
            f"{folder}not read: {names}. To read one, give its path as an input."
        )


def _below_one_folder(paths: Sequence[str]) -> tuple[str, str]:
    """Return words for the folder that contains all paths, and some names relative to it."""
    folder = common_start(paths).rpartition("/")[0]
    names = [shown(path.removeprefix(f"{folder}/")) for path in paths[: NAMES_SHOWN + 1]]
    more = [""] * (len(paths) - len(names))  # hidden paths are counted, not shown
    return f"in {shown(folder)} " * bool(folder), some_of([*names, *more])


def gaps(files: Iterable[InputFile], *, searched: Collection[str]) -> Iterator[str]:
    """Yield a line on each incomplete series of numbered files, such as a-00001-of-00008.jsonl.

    Args:
        files: All files that exist.
        searched: The sources whose files were found by a search, rather than given as a single
            file.
    """
    series: dict[tuple[str, str, str, str], dict[int, InputFile]] = defaultdict(dict)
    for file in files:
        name = file.relative  # few of a million files have a number of this kind
        numbered = "-of-" in name or "_of_" in name
        if numbered and (match := _NUMBERED.fullmatch(stem_of(name))):
            start, number, total, end = match.groups()
            series[file.source, start, total, end][int(number)] = file
    lacking = []
    for (source, _, total, _), of in sorted(series.items()):
        missing = _missing(of, int(total))
        if missing and source in searched:
            lacking.append(f"{missing} of the series {shown(of[min(of)].path)}")
    if lacking:
        yield f"Numbered files are missing: {some_of(lacking, between='; ')}."


def _missing(numbers: Collection[int], total: int) -> str:
    """Return the numbers of a series from 0 or 1 that have no file; "" if there are none."""
    first = 1 if total in numbers and 0 not in numbers else 0
    places = range(first, first + total)
    count = total - sum(number in places for number in numbers)
    if count in (0, total):  # if no file is in its place, this is not a series
        return ""
    absent = islice((str(number) for number in places if number not in numbers), _MAX_NUMBERS)
    more = f" and {count - _MAX_NUMBERS:,} more" * (count > _MAX_NUMBERS)
    return f"{', '.join(absent)}{more}"


def copies(files: Iterable[InputFile]) -> Iterator[str]:
    """Yield a line on files whose names differ only in their extensions."""
    named: dict[tuple[str, str], list[InputFile]] = {}
    for file in files:
        named.setdefault((file.source, stem_of(file.relative)), []).append(file)
    same = [
        " and ".join(
            map(shown, [alike[0].path, *(file.path.rpartition("/")[2] for file in alike[1:])])
        )
        for alike in named.values()
        if len(alike) > 1
    ]
    if same:
        yield (
            f"Files that are probably copies are all read: {some_of(same, between='; ')}. Remove "
            "the copies, unless the files have different texts."
        )
