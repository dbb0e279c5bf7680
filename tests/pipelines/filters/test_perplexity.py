from pathlib import Path

import numpy as np
import pytest
from sentencepiece import SentencePieceProcessor

import pipelines
from pipelines.filters.perplexity import Perplexity, normalise
from tests.pipelines.quality.models import write_arpa

pytest.importorskip("kenlm", reason="corpusmill[quality] is not installed")

PIECES = Path(pipelines.__file__).parent / "sample" / "sample.model"
TEXT = "Énergie 1\n。"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    pieces = SentencePieceProcessor(model_file=str(PIECES)).encode(normalise(TEXT), out_type=str)
    scores = {piece: -1.0 - 0.25 * place for place, piece in enumerate(dict.fromkeys(pieces))}
    path = write_arpa(tmp_path_factory.mktemp("model") / "xx.arpa", scores)
    return f"{path}+{PIECES}"


def test_the_perplexity_is_that_of_the_probabilities_written(files):
    pieces = SentencePieceProcessor(model_file=str(PIECES)).encode(normalise(TEXT), out_type=str)
    scores = {piece: -1.0 - 0.25 * place for place, piece in enumerate(dict.fromkeys(pieces))}
    # The first piece follows <s> with a probability of its own; </s> has that of its unigram.
    total = -0.125 + sum(scores[piece] for piece in pieces[1:]) - 0.5
    values = Perplexity([f"fr={files}"]).score([TEXT, TEXT, " "], ["fr", "de", "fr"])
    (column,) = values
    assert column == "perplexity.value"
    right = 10 ** (-total / (len(pieces) + 1))
    np.testing.assert_allclose(values[column], [right, np.nan, np.nan], rtol=1e-5)
