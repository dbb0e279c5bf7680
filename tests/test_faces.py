"""Public names of packages exist, have types, and are imported on first use."""

import ast
import configparser
import importlib

import pytest

from tests.python import ROOT, python

PACKAGES = ("pipelines", "shards", "trainer")
WITH_TORCH = pytest.param("trainer", marks=pytest.mark.slow)


@pytest.mark.parametrize("package", ["pipelines", "shards", WITH_TORCH])
def test_every_public_name_exists_and_is_typed(package: str) -> None:
    module = importlib.import_module(package)
    public = {*module.__all__}
    for name in public:
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'Laoder'"):
        _ = module.Laoder
    tree = ast.parse((ROOT / package / "__init__.py").read_text("utf-8"))
    typed = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(f"{package}.")
        for alias in node.names
    }
    assert typed - {"extras_named", "install_missing_extra_hook"} == public
    for name in public:  # an imported module with that name would replace the public name
        assert not (ROOT / package / f"{name}.py").exists()
        assert not (ROOT / package / name).exists()


@pytest.mark.parametrize(
    ("package", "light", "used"),
    [
        ("shards", {"torch", "apache_beam", "huggingface_hub", "jinja2"}, "Sampler"),
        ("pipelines", {"torch", "apache_beam", "jinja2", "pipelines.api"}, "build"),
        ("trainer", {"torch", "apache_beam", "deepspeed"}, "Decoding"),
    ],
)
def test_a_package_imports_only_modules_that_are_used(
    package: str, light: set[str], used: str
) -> None:
    script = (
        f"import sys, {package}; loaded = {light!r} & {{*sys.modules}}; {package}.{used}; "
        f"print(loaded, {package}.{used}.__name__)"
    )
    assert python("-c", script, at=ROOT).stdout == f"set() {used}\n"


def test_every_file_of_the_packages_is_installed() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    named = {
        path
        for package, patterns in setup["options.package_data"].items()
        for pattern in patterns.split()
        for path in (ROOT / package.replace(".", "/")).glob(pattern)
    }
    files = {
        path
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {ROOT / package / "py.typed" for package in PACKAGES} <= files
    assert {path for path in files - named if path.suffix != ".py"} == set()
    folders = {path.parent for path in files if path.suffix == ".py"}
    assert {folder for folder in folders if not (folder / "__init__.py").exists()} == set()


def test_no_two_public_classes_share_a_name() -> None:
    places: dict[str, list[str]] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places.setdefault(node.name, []).append(str(path.relative_to(ROOT)))
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == {}
