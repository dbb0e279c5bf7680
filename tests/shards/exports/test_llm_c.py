import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from shards.manifest import TRAIN, VALIDATION
from tests.shards.exports.worlds import export, leaving
from tests.shards.library import EOS

READER = Path(__file__).parents[4] / "shared" / "data" / "readers" / "llm.c"

PROGRAM = r"""
#include "llmc/dataloader.h"

/* Prints the tokens of the loader, batch by batch, and the target that comes after each batch. */
int main(int argc, char *argv[]) {
    DataLoader loader;
    size_t T = atoi(argv[2]);
    dataloader_init(&loader, argv[1], 1, T, 0, 1, 0);
    printf("%zu tokens in %zu files\n", loader.num_tokens, loader.glob_result.gl_pathc);
    for (size_t file = 0; file < loader.glob_result.gl_pathc; file++) {
        if (file) dataloader_advance_(&loader);
        for (size_t i = 0; i < loader.shard_num_samples; i++) {
            dataloader_next_batch(&loader);
            for (size_t t = 0; t < T; t++) printf("%d ", loader.inputs[t]);
            printf("%d\n", loader.targets[T - 1]);
        }
    }
    dataloader_free(&loader);
    return 0;
}
"""


def read(path: Path) -> list[int]:
    """Return the tokens of a file after checking the header."""
    content = path.read_bytes()
    header = np.frombuffer(content, "<i4", 256)
    tokens = np.frombuffer(content, "<u2", offset=1024)
    assert header[:3].tolist() == [20240520, 1, len(tokens)]
    assert not header[3:].any()
    return tokens.tolist()


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that prints the tokens that llm.c's own data loader reads."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not READER.is_dir():
        pytest.skip("llm.c's data loader is not at ../shared/data/readers/llm.c")
    if compiler is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("reader")
    (folder / "read.c").write_text(PROGRAM)
    subprocess.run(
        [compiler, "-std=gnu99", "-w", "-O1", f"-I{READER}", "read.c", "-o", "read", "-lm"],
        cwd=folder,
        check=True,
    )
    return folder / "read"


@pytest.mark.parametrize(("limit", "length"), [(10_000, 1), (10_000, 64), (150, 16)])
def test_llm_c_reads_it(world: Path, tmp_path: Path, reader: Path, limit: int, length: int) -> None:
    out = tmp_path / "out"
    assert export(world, "llm.c", out, "--tokens-per-file", str(limit)) == 0
    for split, word in ((TRAIN, "train"), (VALIDATION, "val")):
        pattern, size = f"{out}/fineweb_{word}_*.bin", min(length, 16 if word == "val" else 64)
        done = subprocess.run(
            [reader, pattern, str(size)], capture_output=True, text=True, check=True
        )
        head, *lines = done.stdout.splitlines()
        # In llm.c, a document begins with the token with which our documents end.
        wanted = [
            token
            for _, documents in leaving(world, split)
            for document in documents
            for token in (EOS, *document.tokens[:-1])
        ]
        files = [read(path) for path in sorted(out.glob(f"fineweb_{word}_*.bin"))]
        assert head == f"{len(wanted)} tokens in {len(files)} files"
        batches = [
            file[start : start + size + 1]
            for file in files
            for start in range(0, (len(file) - 1) // size * size, size)
        ]
        assert [[*map(int, line.split())] for line in lines] == batches
        assert len(batches) > 1
