"""Names of files to which several links lead, and folders that cannot be searched."""

import itertools
import os
import random
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from pipelines.read.local_files import find_local
from pipelines.read.tree import expand_glob, one_path_per_file, search_folder
from shards.errors import UserError
from tests.pipelines.privileges import without_privileges

NUM_TREES = 50


def is_text(path: Path) -> bool:
    return path.suffix == ".txt"


def searched(root: Path) -> list[str]:
    findings = search_folder(root, is_text)
    assert not findings.refused
    named = one_path_per_file(findings.matches, root)
    return [str(path.relative_to(root)) for path in named if path.is_file()]


def globbed(root: Path, *parts: str) -> list[str]:
    findings = expand_glob(root, parts)
    return [str(path.relative_to(root)) for path in one_path_per_file(findings.matches, root)]


def write(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


# Random trees, compared with a list of all names of a file.

UNSEARCHED = (".git", ".no_exist", "lost+found", "_temporary", "__MACOSX")


def is_seen(path: Path) -> bool:
    return not path.name.startswith(".") and path.name not in UNSEARCHED


def make_tree(root: Path, seed: int) -> None:
    """Make folders, files, and links: to these, to parents, out of the tree, and to nothing."""
    rng = random.Random(seed)
    outside = root.parent / "outside"
    folders = [root, outside]
    for folder in folders:
        folder.mkdir()
    for number in range(rng.randrange(2, 8)):
        folder = rng.choice(folders) / rng.choice(["a", "b", "b!", "c", rng.choice(UNSEARCHED)])
        if not folder.exists():
            folder.mkdir()
            folders.append(folder)
        (folder / f"{rng.choice(('', '', '', '._'))}{number}.txt").write_text(str(number))
    places = [*folders, *root.rglob("*.txt"), *outside.rglob("*.txt"), root / "nowhere"]
    for number in range(rng.randrange(4, 14)):
        link = rng.choice(folders) / rng.choice(["a", "b", "b!", "d", f"{number}", "z.txt"])
        if not os.path.lexists(link):
            link.symlink_to(rng.choice(places))


def all_names(root: Path) -> Iterator[Path]:
    """Yield every path, below a folder, that leads to a text and passes no folder twice."""

    def below(folder: Path, passed: frozenset[str]) -> Iterator[Path]:
        real = os.path.realpath(folder)
        if real in passed:
            return
        for path in folder.iterdir():
            if is_seen(path) and path.is_dir():
                yield from below(path, passed | {real})
            elif is_seen(path) and path.is_file() and is_text(path):
                yield path

    return below(root, frozenset())


def one_of_each(root: Path, paths: Iterable[Path]) -> list[str]:
    """Return, for each file, the path that has the fewest links; if several do, the first."""
    names: dict[str, list[tuple[int, Path]]] = {}
    for path in paths:
        name = path.relative_to(root)
        links = sum((root / part).is_symlink() for part in (name, *name.parents[:-1]))
        names.setdefault(os.path.realpath(path), []).append((links, name))
    return [str(name) for name in sorted(min(same)[1] for same in names.values())]


def test_a_file_is_named_by_the_path_with_the_fewest_links(tmp_path: Path) -> None:
    linked = 0
    for seed in range(NUM_TREES):
        root = tmp_path / str(seed) / "in"
        root.parent.mkdir()
        make_tree(root, seed)
        for top in (root, *(root / name for name in UNSEARCHED if (root / name).is_dir())):
            every = [*all_names(top)]
            assert searched(top) == one_of_each(top, every), f"seed {seed}"
            linked += len(every) - len(searched(top))
    assert linked > NUM_TREES // 2


@pytest.mark.parametrize(
    "spec",
    [
        "*.txt",
        "*/*.txt",
        "**/*.txt",
        "b*/?.txt",
        "*/b/**/*",
        ".git/*",
        "*/.*",
        ".*/*/*.txt",
        "_*/*.txt",
    ],
)
def test_globs_match_like_those_of_python(tmp_path: Path, spec: str) -> None:
    found = 0
    for seed in range(NUM_TREES):
        root = tmp_path / str(seed) / "in"
        root.parent.mkdir()
        make_tree(root, seed)
        matched = (path for path in root.glob(spec) if not path.is_dir())
        parts = spec.split("/")  # if one is **, no part begins with a dot
        kept = (
            path
            for path in matched
            if all(
                is_seen(Path(name)) or name[0] == part[0]
                for name, part in itertools.zip_longest(
                    path.relative_to(root).parts, parts, fillvalue="*"
                )
            )
        )
        assert globbed(root, *spec.split("/")) == one_of_each(root, kept), f"seed {seed}"
        found += len(globbed(root, *spec.split("/")))
    assert found


def test_a_glob_goes_up(tmp_path: Path) -> None:
    assert globbed(write(tmp_path, "1.txt", "a/2.txt"), "?", "..", "1.txt") == ["a/../1.txt"]


def harm(root: Path, seed: int) -> None:
    """Remove permissions in a tree, and add entries that are not files."""
    rng = random.Random(seed)
    everything = sorted(root.rglob("*"))
    folders = [root, *(path for path in everything if path.is_dir() and not path.is_symlink())]
    for number, make in enumerate((os.mkfifo, dangling, loop, a_device, unreadable)):
        if rng.random() < 0.4:
            make(rng.choice(folders) / f"{number}.odd.txt")
    for path in everything:
        if rng.random() < 0.2 and not path.is_symlink():
            path.chmod(rng.choice([0, 0o200, 0o300, 0o400, 0o600]) if path.is_dir() else 0)


def test_every_match_is_read_or_named(tmp_path: Path) -> None:
    named = 0
    for seed in range(NUM_TREES):
        root = tmp_path / str(seed) / "in"
        root.parent.mkdir()
        make_tree(root, seed)
        harm(root, seed)
        every = (path for path in root.rglob("*.txt") if not path.is_dir())
        there = [path for path in every if all(is_seen(Path(x)) for x in path.parts)]
        if not there:
            continue
        with without_privileges():
            found = find_local(str(root), ("*.txt",))
            opened = [Path(file.path).open("rb").close() for file in found.files]
        assert len(opened) == len(found.files)
        read = {os.path.realpath(file.path) for file in found.files}
        told = {file.path.rstrip("/") for file in found.refused}
        for path in there:
            real = Path(os.path.realpath(path))
            # The message may give a different name of the file, or name one of its folders instead.
            names = {str(name) for name in (path, *path.parents, real, *real.parents)}
            assert str(real) in read or names & told, f"seed {seed}: {path}"
        named += len(told)
    assert named > NUM_TREES


# Files that cannot be read.


def dangling(path: Path) -> None:
    path.symlink_to(path.parent / "nothing")


def loop(path: Path) -> None:
    path.symlink_to(path)


def a_device(path: Path) -> None:
    path.symlink_to("/dev/null")


def unreadable(path: Path) -> None:
    path.write_text("text")
    path.chmod(0)


def folder_of(mode: int) -> Callable[[Path], None]:
    def make(path: Path) -> None:
        write(path, "2.txt")
        path.chmod(mode)

    return make


def link_into(path: Path) -> None:
    folder_of(0)(path.parent.parent / "closed")
    path.symlink_to(path.parent.parent / "closed" / "2.txt")


def too_deep(path: Path) -> None:
    path.mkdir()
    handles = [os.open(path, os.O_RDONLY)]
    for _ in range(25):
        os.mkdir("d" * 200, dir_fd=handles[-1])
        handles.append(os.open("d" * 200, os.O_RDONLY, dir_fd=handles[-1]))
    for handle in handles:
        os.close(handle)


NOTHING = "is a broken link to .*nothing"
READ, LISTED = "cannot be read: permission denied", "cannot be listed: permission denied"


@pytest.mark.parametrize(
    ("make", "name", "why"),
    [
        (dangling, "x.txt", NOTHING),
        (folder_of(0o300), "x/", LISTED),
        (folder_of(0o600), "x/2.txt", READ),
        (link_into, "x.txt", READ),
        (too_deep, "x/", r"cannot be listed \(File name too long\)"),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_unreadable_matches_are_named(
    tmp_path: Path, make: Callable[[Path], None], name: str, why: str
) -> None:
    root = write(tmp_path / "in", "1.txt")
    make(root / name.removesuffix("/2.txt").rstrip("/"))
    # ** does not follow links.
    specs = [str(root)] + [f"{root}/**/*.txt"] * (make is not link_into)
    for spec, growing in itertools.product(specs, (False, True)):
        with without_privileges():
            found = find_local(spec, ("*.txt",), growing=growing)
        assert [file.relative for file in found.files] == ["1.txt"]
        ((file, reason),) = found.refused.items()
        assert re.match(f"{name}(d*/)*$", file.relative)
        assert file.path == f"{root}/{file.relative}"
        assert re.match(why, reason)


@pytest.mark.parametrize("mode", [0, 0o300])
def test_an_input_that_cannot_be_searched_is_named(tmp_path: Path, mode: int) -> None:
    root = write(tmp_path / "in", "1.txt")
    with without_privileges():
        root.chmod(mode)
        found = find_local(str(root), ("*.txt",))
        assert not found.files
        assert [*found.refused.values()] == ["cannot be listed: permission denied"]
        for spec in (str(root), f"{root}/*"):
            with pytest.raises(UserError, match=r"/in cannot be listed: permission denied"):
                find_local(spec, ("*.txt",), growing=True)
        if mode != 0o300:
            with pytest.raises(UserError, match=r"cannot be opened \(Permission denied\); check t"):
                find_local(f"{root}/1.txt", ())
