"""A missing extra is reported with the command that installs it; all other errors show."""

import configparser
import importlib
import importlib.util
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest

from shards.commands.extras import missing_extra, missing_extras_explained
from tests.python import ROOT, python


def hide(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Make modules appear not to be installed."""
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)


def without(folder: Path, *modules: str) -> str:
    """Return a PYTHONPATH with which Python finds some modules not installed."""
    hidden = f"import sys\nsys.modules.update(dict.fromkeys({modules!r}))\n"
    (folder / "sitecustomize.py").write_text(hidden)
    return f"{folder}:{ROOT}"


@pytest.mark.parametrize("missing", ["zstandard", "orjson"])
def test_a_command_ends_with_a_paragraph(missing: str, tmp_path: Path) -> None:
    path = without(tmp_path, missing)
    done = python("-m", "pipelines.wudao", "--output", "out", at=tmp_path, PYTHONPATH=path)
    assert done.stdout == ""
    assert done.stderr == (
        f"pipelines.wudao: {missing} is not installed; the extra 'pipelines' installs it: "
        "pip install 'corpusmill[pipelines]'\n"
    )
    assert done.returncode == 2


@pytest.mark.parametrize(
    ("statement", "extra"),
    [
        ("from pipelines.corpus import Options", "pipelines"),
        ("from trainer import Loader", "train"),
    ],
)
def test_from_python_it_is_an_import_error(statement: str, extra: str, tmp_path: Path) -> None:
    script = f"try: {statement}\nexcept ImportError as error: print(error.name, error)"
    script = script.replace("try: ", "try:\n    ").replace("error: ", "error:\n    ")
    path = without(tmp_path, "orjson", "apache_beam", "torch", "jinja2")
    done = python("-c", script, at=tmp_path, PYTHONPATH=path)
    told = rf"(\w+) \1 is not installed; the extra '{extra}' installs it: .*\[{extra}\]'\n"
    assert re.fullmatch(told, done.stdout)


def test_every_extra_is_known_by_its_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    extras = setup["options.extras_require"]
    monkeypatch.setattr(metadata, "requires", lambda _: list(_as_installed(extras)))
    for extra, lines in extras.items():
        if extra in {"dev", "test", "lint"}:
            continue
        for requirement in lines.split():
            module = re.split(r"[><=]", requirement)[0].replace("-", "_")
            assert extra in {"quality"} or importlib.util.find_spec(module), module
            with monkeypatch.context() as inside:
                hide(inside, module)
                told = missing_extra(ModuleNotFoundError(name=module))
            assert told is not None, module
            home = next(name for name in extras if f"\n{requirement}" in extras[name])
            assert f"pip install 'corpusmill[{home}]'" in told


def _as_installed(extras: configparser.SectionProxy) -> list[str]:
    return [
        f'{requirement}; extra == "{extra}"'
        for extra, lines in extras.items()
        for requirement in lines.split()
    ]


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'json.x'", name="json.x"),
        ModuleNotFoundError("No module named 'zstandard.backend_c'", name="zstandard.backend_c"),
        ModuleNotFoundError("No module named 'orjson'", name="orjson"),  # orjson is installed
        ModuleNotFoundError("No module named 'mine'", name="mine"),
        ModuleNotFoundError("No module named 'hypothesis'", name="hypothesis"),
        ModuleNotFoundError("mine"),
        ImportError("libcudart.so.13: cannot open shared object file", name="torch"),
        KeyError("torch"),
    ],
)
def test_other_errors_stay_what_they_are(error: Exception) -> None:
    assert missing_extra(error) is None
    with pytest.raises(type(error)) as seen, missing_extras_explained():
        raise error
    assert seen.value is error
