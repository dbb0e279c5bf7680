import sys
from pathlib import Path

import pytest

from shards.errors import UserError
from trainer.hosts import Host, check_hosts, read_hostfile
from trainer.launcher import main

SSH = """#!/bin/sh
# ssh -o OPTION … [-p PORT] HOST COMMAND, as each of these machines answers.
while [ "$1" = -o ] || [ "$1" = -p ]; do shift 2; done
host=$1
shift
case "$host" in
    node-*) exec sh -c "$*" ;;
    far) cd / && PWD=/ exec sh -c "$(echo "$*" | sed 's#cd [^ ]*#cd /no/such/folder#')" ;;
    bare) exec sh -c "$(echo "$*" | sed 's#-x [^ ]*#-x /no/such/python#')" ;;
    silent) exit 255 ;;
    *) echo "ssh: Could not resolve hostname $host: Name or service not known" >&2; exit 255 ;;
esac
"""
TRAIN = ("--module", "trainer.train", "--model", "tiny")


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    for name, text in (("ssh", SSH), ("pdsh", "#!/bin/sh\n")):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def hostfile(folder: Path, text: str) -> str:
    (folder / "hosts").write_text(text)
    return str(folder / "hosts")


def test_a_hostfile(tmp_path: Path) -> None:
    path = hostfile(tmp_path, "# by rank\n\nnode-a slots=8\n  90.90.3.39\tslots=4  # smaller\n")
    assert read_hostfile(Path(path)) == [
        Host(name="node-a", slots=8, line=3),
        Host(name="90.90.3.39", slots=4, line=4),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node-a slots=8\n90.90.3.37 slot=8\n", r"hosts:2 is '90.90.3.37 slot=8': .*\(with an s\)"),
        ("node-a\n", r"hosts:1 is 'node-a': expected .* as node-a slots=8"),
        ("node-a slots=eight\n", "hosts:1 is"),
        ("node-a slots=0\n", "hosts:1 is"),
        ("node-a slots=8x\n", "hosts:1 is"),
        ("node-a slots=1\n\nnode-a slots=2\n", "hosts:3 names node-a again, .* in line 1"),
        ("# nothing\n", "names no machine"),
    ],
)
def test_lines_that_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_hostfile(Path(hostfile(tmp_path, text)))


def test_a_hostfile_that_is_not_there_does_not_start_one_machine(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none cannot be read: No such file .* this machine alone"):
        check_hosts(("--hostfile", str(tmp_path / "none"), *TRAIN))


def test_machines_that_answer(tmp_path: Path, programs: Path) -> None:
    path = hostfile(tmp_path, "node-a slots=1\nnode-b slots=1\n")
    check_hosts(("--hostfile", path, "--ssh_port", "2222", "--num_gpus", "1", *TRAIN))
    check_hosts(TRAIN, default=Path(path))
    check_hosts(TRAIN, default=programs / "none")


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("gone", "gone .*hosts:2. does not answer ssh: .* resolve hostname gone: Name or service"),
        ("silent", "silent .*hosts:2. does not answer ssh: it ended with code 255"),
        ("far", "far .*hosts:2. has no folder /"),
        ("bare", f"bare .*hosts:2. has no Python at {sys.executable}"),
    ],
)
def test_machines_that_cannot_start_ranks(
    tmp_path: Path, programs: Path, host: str, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert (programs / "ssh").exists()
    path = hostfile(tmp_path, f"node-a slots=1\n{host} slots=1\n")
    with pytest.raises(UserError, match=f"1 of 2 machines .*: {message}"):
        check_hosts(("-H", path, *TRAIN))
    assert main(["deepspeed", f"--hostfile={path}", *TRAIN]) == 2
    shown = capfd.readouterr().err
    assert shown.startswith("trainer.launcher: 1 of 2 machines")
    assert shown.count("\n") == 1
    for left_out in (("--exclude", host), ("-i", "node-a:0"), ("--num_nodes", "1"), ("--no_ssh",)):
        check_hosts(("-H", path, *left_out, *TRAIN))


def test_of_many_machines_some_are_named(tmp_path: Path, programs: Path) -> None:
    assert (programs / "ssh").exists()
    path = hostfile(tmp_path, "".join(f"gone-{i} slots=1\n" for i in range(8)))
    with pytest.raises(UserError, match=r"8 of 8 machines .*gone-4 .*; and 3 more\.") as caught:
        check_hosts(("-H", path, *TRAIN))
    assert "gone-5" not in str(caught.value)


def test_programs_that_are_missing(
    tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(programs))
    (programs / "pdsh").unlink()
    path = hostfile(tmp_path, "node-a slots=1\nnode-b slots=1\n")
    with pytest.raises(UserError, match=r"ranks of 2 machines by pdsh, .*: apt-get install pdsh"):
        check_hosts(("-H", path, *TRAIN))
    (programs / "ssh").unlink()
    with pytest.raises(UserError, match="there is no ssh on this machine"):
        check_hosts(("-H", path, "--num_nodes", "1", *TRAIN))


def test_a_machine_that_the_hostfile_has_not(tmp_path: Path) -> None:
    path = hostfile(tmp_path, "node-a slots=1\n")
    with pytest.raises(UserError, match=r"--exclude names node-c, .*; it has node-a"):
        check_hosts(("-H", path, "--exclude", "node-c", *TRAIN))
