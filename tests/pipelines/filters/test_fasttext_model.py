import struct
from pathlib import Path

import numpy as np
import pytest

from pipelines.corpus.languages import LANGUAGES
from pipelines.filters.fasttext_model import END_OF_LINE, read_model, tree
from pipelines.filters.langid import installed_model

LINES = [
    "__label__en the cat sat on the mat and looked at the moon",
    "__label__de die Katze saß auf der Matte und sah den Mond an",
    "__label__fr le chat était assis sur le tapis et regardait la lune",
    "__label__zh 猫 坐 在 垫子 上 看着 月亮",
    "__label__en where did the cat go last night",
]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lines") / "lines.txt"
    path.write_text("\n".join(LINES * 30) + "\n", encoding="utf-8")
    return path


def head(*numbers: int) -> bytes:
    """Return magic, version and arguments: 12 numbers and one more."""
    return struct.pack("<14id", 793712314, 12, *numbers, 1e-4)


HEAD = head(16, 5, 5, 1, 5, 1, 1, 3, 100, 2, 4, 100)


def test_installed_model() -> None:
    model = read_model(installed_model())
    assert (model.shortest, model.longest, model.num_buckets) == (2, 4, 2_000_000)
    assert {label.removeprefix("__label__") for label in model.labels} == LANGUAGES
    assert model.labels[0] == "__label__en"
    assert model.words[0] == END_OF_LINE
    assert model.input.shape == (50_000, 16)
    assert model.kept is not None
    assert len(model.kept) == 50_000 - len(model.words)
    nodes, factors = model.output.rows()
    assert nodes.shape == (176, 16)
    assert (factors == 1).all()
    children = tree(model.counts)
    np.testing.assert_array_equal(children[:176], -1)
    # Each node but the root is the child of one.
    assert sorted(children[176:].ravel()) == list(range(350))


def test_rows_are_those_that_fasttext_adds() -> None:
    library = pytest.importorskip("fasttext_new", reason="it shows rows").load_model(
        str(installed_model())
    )
    rows, norms = read_model(installed_model()).input.rows()
    for row in range(0, 50_000, 97):
        np.testing.assert_array_equal(rows[row] * norms[row], library.get_input_vector(row))


def test_tree_of_counts() -> None:
    assert tree([1]).tolist() == [[-1, -1]]
    # 2 + 1 make node 4 (3), which comes before label 1 (3); 3 + 3 make node 5, 6 + 8 the root.
    assert tree([8, 3, 2, 1])[4:].tolist() == [[3, 2], [4, 1], [5, 0]]


def test_equal_counts_take_nodes_first() -> None:
    assert tree([2, 1, 1, 1, 1])[5:].tolist() == [[4, 3], [2, 1], [5, 6], [0, 7]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "empty file"),
        (b"no", "it ends early"),
        (b"not a model at all", "does not begin as"),
        (struct.pack("<2i", 793712314, 13), "does not begin as"),
        (HEAD[:20], "it ends early"),
        (HEAD, "it ends early"),
        (head(16, 5, 5, 1, 5, 1, 9, 3, 100, 2, 4, 100), "is no classifier"),
        (head(16, 5, 5, 1, 5, 1, 1, 2, 100, 2, 4, 100), "is no classifier"),
        (HEAD + struct.pack("<iiiqq", 1, 1, 0, 9, -1), "1 words and 0 labels"),
        (HEAD + struct.pack("<iiiqq", 2, 1, 1, 9, -1) + b"</s>", "no word ends"),
        (
            HEAD + struct.pack("<iiiqq", 2, 1, 1, 9, -1) + b"a\0" + struct.pack("<qb", 1, 1),
            "entry 0 is no word or label, or out of order",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else len(value),
)
def test_files_that_are_no_such_model(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(data)
    with pytest.raises(ValueError, match=message):
        read_model(path)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.6, 0.99])
def test_files_that_end_early(tmp_path: Path, share: float) -> None:
    data = installed_model().read_bytes()
    path = tmp_path / "model.ftz"
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(ValueError, match="it ends early"):
        read_model(path)


@pytest.mark.parametrize(("buckets", "quantize"), [(3000, False), (0, False), (3000, True)])
def test_trained_models(tmp_path: Path, lines: Path, buckets: int, quantize: bool) -> None:
    fasttext = pytest.importorskip("fasttext_new", reason="it trains")
    with_ngrams = {"minn": 2, "maxn": 4} if buckets else {"minn": 0, "maxn": 0}
    library = fasttext.train_supervised(
        str(lines), loss="hs", dim=6, bucket=buckets, thread=1, verbose=0, **with_ngrams
    )
    if quantize:
        library.quantize(str(lines), qnorm=True, verbose=0)
    path = tmp_path / "model.bin"
    library.save_model(str(path))
    model = read_model(path)
    assert model.kept is None
    assert [word.decode() for word in model.words] == library.get_words()
    rows, norms = model.input.rows()
    assert rows.shape == (len(model.words) + buckets, 6)
    for row in range(len(rows)):
        np.testing.assert_array_equal(rows[row] * norms[row], library.get_input_vector(row))
