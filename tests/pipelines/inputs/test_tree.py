"""The names of files where folders and files are linked, and what cannot be searched."""

import itertools
import os
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipelines.inputs.local_files import find_local
from pipelines.inputs.tree import expand, named_once, search
from shards.errors import UserError
from tests.pipelines.privileges import without_privileges

NUM_TREES = 50


def is_text(path: Path) -> bool:
    return path.suffix == ".txt"


def searched(root: Path) -> list[str]:
    findings = search(root, is_text)
    assert not findings.refused
    named = named_once(findings.matches, root)
    return [str(path.relative_to(root)) for path in named if path.is_file()]


def globbed(root: Path, *parts: str) -> list[str]:
    findings = expand(root, parts)
    return [str(path.relative_to(root)) for path in named_once(findings.matches, root)]


def write(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


# Random trees against all names that a file has


def make_tree(root: Path, seed: int) -> None:
    """Make folders, files and links to both, some out of the tree, up, or to nowhere."""
    rng = random.Random(seed)
    outside = root.parent / "outside"
    folders = [root, outside]
    for folder in folders:
        folder.mkdir()
    for number in range(rng.randrange(2, 8)):
        folder = rng.choice(folders) / rng.choice(["a", "b", "b!", "c"])
        if not folder.exists():
            folder.mkdir()
            folders.append(folder)
        (folder / f"{number}.txt").write_text(str(number))
    places = [*folders, *root.rglob("*.txt"), *outside.rglob("*.txt"), root / "nowhere"]
    for number in range(rng.randrange(4, 14)):
        link = rng.choice(folders) / rng.choice(["a", "b", "b!", "d", f"{number}", "z.txt"])
        if not os.path.lexists(link):
            link.symlink_to(rng.choice(places))


def all_names(root: Path) -> Iterator[tuple[int, Path]]:
    """Yield every name of every text below a folder that passes each folder once, and its links."""

    def below(folder: Path, links: int, passed: frozenset[str]) -> Iterator[tuple[int, Path]]:
        real = os.path.realpath(folder)
        if real in passed:
            return
        for path in folder.iterdir():
            through = links + path.is_symlink()
            if path.is_dir():
                yield from below(path, through, passed | {real})
            elif path.is_file() and is_text(path):
                yield through, path.relative_to(root)

    return below(root, 0, frozenset())


def test_a_file_has_the_name_of_fewest_links_and_of_these_the_first(tmp_path: Path) -> None:
    linked = 0
    for seed in range(NUM_TREES):
        root = tmp_path / str(seed) / "in"
        root.parent.mkdir()
        make_tree(root, seed)
        every: dict[str, list[tuple[int, Path]]] = {}
        for links, path in all_names(root):
            every.setdefault(os.path.realpath(root / path), []).append((links, path))
        expected = sorted(min(names)[1] for names in every.values())
        linked += sum(len(names) > 1 for names in every.values())
        assert searched(root) == [str(path) for path in expected], f"seed {seed}"
    assert linked > NUM_TREES


def harm(root: Path, seed: int) -> None:
    """Take rights away, and put what is no file where there was nothing."""
    rng = random.Random(seed)
    everything = sorted(root.rglob("*"))
    folders = [root, *(path for path in everything if path.is_dir() and not path.is_symlink())]
    for number, make in enumerate((os.mkfifo, dangling, loop, a_device, unreadable)):
        if rng.random() < 0.4:
            make(rng.choice(folders) / f"{number}.odd.txt")
    for path in everything:
        if rng.random() < 0.2 and not path.is_symlink():
            path.chmod(rng.choice([0, 0o200, 0o300, 0o400, 0o600]) if path.is_dir() else 0)


def test_all_that_matches_is_read_or_named(tmp_path: Path) -> None:
    named = 0
    for seed in range(NUM_TREES):
        root = tmp_path / str(seed) / "in"
        root.parent.mkdir()
        make_tree(root, seed)
        harm(root, seed)
        there = [path for path in root.rglob("*.txt") if not path.is_dir()]
        if not there:
            continue
        with without_privileges():
            files, refused = find_local(str(root), ("*.txt",))
            opened = [Path(file.path).open("rb").close() for file in files]
        assert len(opened) == len(files)
        read = {os.path.realpath(file.path) for file in files}
        told = {file.path.rstrip("/") for file in refused}
        for path in there:
            real = Path(os.path.realpath(path))
            # It may have another name, and a folder of it be named instead.
            names = {str(name) for name in (path, *path.parents, real, *real.parents)}
            assert str(real) in read or names & told, f"seed {seed}: {path}"
        named += len(told)
    assert named > NUM_TREES


# Links one by one


def test_a_cache_of_the_hub_is_read_by_its_snapshots(tmp_path: Path) -> None:
    write(tmp_path, "blobs/3f", "blobs/77")
    for commit, names in {"bb": {"x": "3f", "y": "77"}, "aa": {"x": "3f"}}.items():
        folder = tmp_path / "snapshots" / commit / "data"
        folder.mkdir(parents=True)
        for name, blob in names.items():
            (folder / f"{name}.txt").symlink_to(f"../../../blobs/{blob}")
    write(tmp_path, ".no_exist/aa/data/y.txt")
    assert searched(tmp_path) == ["snapshots/aa/data/x.txt", "snapshots/bb/data/y.txt"]
    assert searched(tmp_path / "snapshots" / "bb") == ["data/x.txt", "data/y.txt"]


def test_an_annexed_folder_is_read_by_its_work_tree(tmp_path: Path) -> None:
    for key in ("1", "2", "old"):
        write(tmp_path, f".git/annex/objects/aa/{key}.txt/{key}.txt")
    for name, key in {"data/one.txt": "1", "data/same.txt": "1", "two.txt": "2"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        up = "../" * name.count("/")
        (tmp_path / name).symlink_to(f"{up}.git/annex/objects/aa/{key}.txt/{key}.txt")
    write(tmp_path, "lost+found/3.txt")
    assert searched(tmp_path) == ["data/one.txt", "two.txt"]
    assert globbed(tmp_path, "**", "*.txt") == ["data/one.txt", "two.txt"]
    assert len(searched(tmp_path / ".git")) == 3
    assert len(globbed(tmp_path, ".git", "**", "*.txt")) == 3


@pytest.mark.parametrize(
    ("parts", "names"),
    [
        (("*.txt",), ["1.txt"]),
        (("*", "*.txt"), ["a/2.txt", "b/3.txt"]),
        (("**", "*.txt"), ["1.txt", "a/2.txt", "a/b/4.txt"]),
        (("a", "?", "4.txt"), ["a/b/4.txt"]),
        (("?", "..", "1.txt"), ["a/../1.txt"]),
        (("a*", "none.txt"), []),
    ],
)
def test_globs(tmp_path: Path, parts: tuple[str, ...], names: list[str]) -> None:
    root = write(tmp_path / "in", "1.txt", "a/2.txt", "a/b/4.txt")
    write(tmp_path, "elsewhere/3.txt")
    (root / "b").symlink_to(tmp_path / "elsewhere")
    assert globbed(root, *parts) == names
    if ".." not in parts and parts[-1] != "**":
        assert sorted(str(path.relative_to(root)) for path in root.glob("/".join(parts))) == names


# What cannot be read


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


NOTHING = "is a link to .*nothing, where there is nothing"
READ, SEARCHED = "may not be read: check", "may not be searched: check"


@pytest.mark.parametrize(
    ("make", "name", "why"),
    [
        (dangling, "x.txt", NOTHING),
        (folder_of(0o300), "x/", SEARCHED),
        (folder_of(0o600), "x/2.txt", READ),
        (link_into, "x.txt", READ),
        (too_deep, "x/", r"cannot be searched \(File name too long\)"),
    ],
    ids=lambda value: value.__name__ if callable(value) else None,
)
def test_what_matches_and_cannot_be_read_is_named(
    tmp_path: Path, make: Callable[[Path], None], name: str, why: str
) -> None:
    root = write(tmp_path / "in", "1.txt")
    make(root / name.removesuffix("/2.txt").rstrip("/"))
    # What a link leads to is not searched by **.
    specs = [str(root)] + [f"{root}/**/*.txt"] * (make is not link_into)
    for spec, growing in itertools.product(specs, (False, True)):
        with without_privileges():
            files, refused = find_local(spec, ("*.txt",), growing=growing)
        assert [file.relative for file in files] == ["1.txt"]
        ((file, reason),) = refused.items()
        assert re.match(f"{name}(d*/)*$", file.relative)
        assert file.path == f"{root}/{file.relative}"
        assert re.match(why, reason)


@pytest.mark.parametrize("mode", [0, 0o300])
def test_an_input_that_cannot_be_searched_is_named(tmp_path: Path, mode: int) -> None:
    root = write(tmp_path / "in", "1.txt")
    with without_privileges():
        root.chmod(mode)
        files, refused = find_local(str(root), ("*.txt",))
        assert (files, [*refused.values()]) == ([], ["may not be searched: check its permissions"])
        for spec in (str(root), f"{root}/*"):
            with pytest.raises(UserError, match=r"/in may not be searched: check its permissions"):
                find_local(spec, ("*.txt",), growing=True)
        if mode != 0o300:
            with pytest.raises(
                UserError, match=r"cannot be reached \(Permission denied\); check t"
            ):
                find_local(f"{root}/1.txt", ())
