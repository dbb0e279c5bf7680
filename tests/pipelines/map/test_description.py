import pickle
from pathlib import Path

import numpy as np
import pytest

from pipelines.compiled import available
from pipelines.map.chain import load_chain
from pipelines.map.description import describe_run, tokenizer_entry
from tests.pipelines.runs import small


def test_a_tokenizer_is_named_by_its_file_and_not_by_its_folder() -> None:
    class Made:
        fingerprint, pieces, vocabulary_size = "ab" * 32, 100, 128
        dtype, special = np.dtype("uint16"), {"eos": 100}

    entry = tokenizer_entry("sentencepiece:/home/me/a.model", Made())  # type: ignore[arg-type]  # all that is read
    assert (entry.spec, entry.name, entry.sha256) == ("sentencepiece", "a.model", "ab" * 32)
    assert (entry.pieces, entry.vocabulary_size, entry.dtype) == (100, 128, "uint16")


def test_the_process_that_describes_a_chain_keeps_it_for_the_run() -> None:
    options = small(Path("out"), "in")
    described = describe_run((options, False, "one run"))
    chain = load_chain(pickle.loads(pickle.dumps(options)), native=False, run="one run")
    assert describe_run((options, False, "one run")).facts == chain.facts == described.facts
    assert load_chain(options, native=False, run="one run") is chain
    assert described.engines == chain.engines
    assert described.vocabulary.num_rows == described.tokenizer.vocabulary_size
    again = pickle.loads(pickle.dumps(described))
    assert (again.tokenizer, again.facts) == (described.tokenizer, described.facts)
    # Files may have changed until the next run of the same process.
    assert load_chain(options, native=False, run="another run") is not chain


def test_native_loops_are_not_claimed_where_numba_cannot_be_imported(
    tmp_path: Path, broken_numba: str, caplog: pytest.LogCaptureFixture
) -> None:
    options = small(Path("out"), "in")
    assert not describe_run((options, True, str(tmp_path))).native
    assert not describe_run((options, False, str(tmp_path))).native
    assert caplog.messages == [broken_numba]


@pytest.mark.skipif(not available(), reason="numba is missing or switched off")
def test_native_loops_are_named_where_they_are_used(tmp_path: Path) -> None:
    assert describe_run((small(Path("out"), "in"), True, str(tmp_path))).native
