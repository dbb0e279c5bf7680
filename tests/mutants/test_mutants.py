"""Faults are drawn from code, put into a file, and noticed by tests."""

import ast
import mmap
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.__main__ import _draw, _print_table
from tests.mutants.choice import Choice
from tests.mutants.copies import MARKS, ROOT, add_marks, copy_repository
from tests.mutants.faults import Fault, faults_of
from tests.mutants.reach import Reach
from tests.mutants.trial import run_trial
from tests.mutants.unseen import UNSEEN
from tests.mutants.worker import applied, key

_TESTS = """
from product import area

def test_type():
    assert isinstance(area(2, 3), int)

def test_value():
    assert area(2, 3) == 6
"""


def _faults(tmp_path: Path, source: str) -> list[Fault]:
    path = tmp_path / "product.py"
    path.write_text(source, encoding="utf-8")
    return list(faults_of(tmp_path, path))


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("x = a < b", ["(a <= b)"]),
        ("x = a == b", ["(a != b)"]),
        ("x = a and b", ["(a or b)"]),
        ("x = not a", ["(a)"]),
        ("x = a + b", ["(a - b)"]),
        ("x = '一' + a", []),
        ("x = 7", ["(8)"]),
        ("x = 0.5", ["(0.625)"]),
        ("x = True", ["(False)"]),
        ("x = a['k']", ["('k_')"]),
        ("if a: f()", ["(not a)", "pass"]),
        ("f(a, b)", ["pass", "(f(b, a))"]),
        ("x = f(a, k=b)", ["(f(a))"]),
        ("x = f(a, help='text')", []),
        ("raise ValueError(f'{1 + 2}')", []),
        ("x: tuple[int, 2] = a", []),
        ("_LOG.warning('text')", []),
        ("def f(a=1): return a", ["(2)", "return None"]),
        ("def f(a): return False", ["(True)"]),
        ("def f(a): return a > 0", ["(a >= 0)", "(1)", "return not a > 0"]),
        ("while a:\n    break", ["(not a)", "continue"]),
        ("if __name__ == '__main__': f()", []),
    ],
)
def test_faults_of_a_line(tmp_path: Path, line: str, changed: list[str]) -> None:
    found = [fault.after for fault in _faults(tmp_path, line)]
    assert sorted(found) == sorted(changed)


@pytest.mark.slow
def test_every_fault_of_the_product_is_valid_and_changes_the_code() -> None:
    faults = _draw(["pipelines", "shards", "trainer"], size=10**6, seed=5)
    assert UNSEEN.keys() <= {key(fault) for fault in faults}, "these faults no longer exist"
    for fault in faults[:300]:
        source = (ROOT / fault.path).read_bytes()
        assert ast.dump(ast.parse(fault.applied(source))) != ast.dump(ast.parse(source)), fault


@pytest.mark.slow
def test_a_draw_is_the_same_each_time_and_another_for_another_seed() -> None:
    draws = [[str(fault) for fault in _draw(["shards"], size=50, seed=seed)] for seed in (1, 1, 2)]
    assert draws[0] == draws[1]
    assert len({*draws[0], *draws[2]}) > 90


def test_other_code_does_not_change_the_draw_of_a_fault(tmp_path: Path) -> None:
    alone = _faults(tmp_path, "def f(a):\n    return a + 1\n")
    below = _faults(tmp_path, "x = 3\n\n\ndef f(a):\n    return a + 1\n")
    assert {fault.draw for fault in alone} < {fault.draw for fault in below}


def test_a_fault_is_put_in_and_taken_out(tmp_path: Path) -> None:
    source = "def f(a):\n    return '一' if a < 2 else a\n"
    path = tmp_path / "product.py"
    for fault in _faults(tmp_path, source):
        with applied(path, fault):
            assert path.read_text(encoding="utf-8") == source.replace(fault.before, fault.after)
        assert path.read_text(encoding="utf-8") == source


@pytest.mark.slow
def test_a_trial_names_the_test_that_fails(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    product = copy / "product.py"
    product.write_text("def area(a, b):\n    return a * b\n", encoding="utf-8")
    (copy / "test_area.py").write_text(_TESTS, encoding="utf-8")
    (copy / "setup.cfg").write_text("[tool:pytest]\npythonpath = .\n", encoding="utf-8")
    tests = [("test_area.py::test_type", 0.1), ("test_area.py::test_value", 0.1)]
    assert not run_trial(copy, tests).caught_by
    fault = next(fault for fault in faults_of(copy, product) if fault.after == "(a // b)")
    with applied(product, fault):
        verdict = run_trial(copy, tests)
    assert (verdict.caught_by, verdict.ran) == ("test_area.py::test_value", 2)


@pytest.mark.slow
def test_a_marked_copy_records_the_functions_that_ran(tmp_path: Path) -> None:
    copy = copy_repository(tmp_path / "copy")
    functions = add_marks(copy)
    marks = tmp_path / "marks"
    marks.write_bytes(bytes(len(functions)))
    subprocess.run(
        [
            sys.executable,
            "-c",
            "from shards.sampling.windows import num_windows; num_windows(9, 4)",
        ],
        cwd=copy,
        env={"PYTHONPATH": str(copy), MARKS: str(marks)},
        check=True,
    )
    with marks.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as found:
        ran = {name for name, mark in zip(functions, found, strict=True) if mark == b"\1"}
    assert "shards/sampling/windows.py::num_windows" in ran
    assert len(ran) < 50


def test_tests_are_chosen_by_the_functions_they_reach_cheapest_first() -> None:
    function = "shards/sampling/windows.py::num_windows"
    reach = Reach(functions=[function, "shards/sampling/windows.py::cut"])
    reach.tests = {
        "tests/shards/test_dear.py::test_one": (3.0, [0, 1]),
        "tests/shards/test_cheap.py::test_one": (0.1, [0]),
        "tests/shards/test_other.py::test_one": (0.1, [1]),
        "tests/golden/test_golden.py::test_row[a]": (0.1, [0, 1]),
        "tests/shards/test_endless.py::test_one": (300.0, [0]),
    }
    path = ROOT / "shards" / "sampling" / "windows.py"
    fault = next(fault for fault in faults_of(ROOT, path) if fault.function == "num_windows")
    assert Choice(ROOT, reach).tests(fault) == [
        "tests/shards/test_cheap.py::test_one",
        "tests/shards/test_dear.py::test_one",
        "tests/golden/test_golden.py::test_row[a]",
    ]


def test_the_table_lists_survivors_and_ends_with_the_sum(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = _faults(tmp_path, "def f(a):\n    return a < 2\n")
    results = {fault.draw[:16]: {"caught_by": "test_a"} for fault in faults[1:]}
    _print_table(faults, {**results, faults[0].draw[:16]: {"caught_by": ""}})
    assert capsys.readouterr().out.splitlines() == [
        f"{faults[0].draw[:16]}  {faults[0]}",
        f"product.py: caught {len(faults) - 1} of {len(faults)}; 0 cannot be seen",
        f"all: caught {len(faults) - 1} of {len(faults)}; 0 cannot be seen",
    ]
