import sys
from pathlib import Path

import numpy as np
import pytest
from sentencepiece import SentencePieceProcessor

import pipelines
from pipelines.filters.perplexity import Perplexity, normalise
from shards.errors import UserError
from tests.pipelines.quality.models import write_arpa

pytest.importorskip("kenlm", reason="corpusmill[quality] is not installed")

PIECES = Path(pipelines.__file__).parent / "sample" / "sample.model"
TEXT = "Énergie 1\n。"
CUTOFFS = "percentile,de,zh\n30,100.5,200\n60,300,400\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    pieces = SentencePieceProcessor(model_file=str(PIECES)).encode(normalise(TEXT), out_type=str)
    scores = {piece: -1.0 - 0.25 * place for place, piece in enumerate(dict.fromkeys(pieces))}
    path = write_arpa(tmp_path_factory.mktemp("model") / "xx.arpa", scores)
    return f"{path}+{PIECES}"


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("  Straße ÉCOLE\t", "straße ecole"),
        ("1２٣ und 45", "000 und 00"),
        ("“a” «b» 《c》，d。e—f…", '"a" "b" "c",d.e - f...'),
        ("one\ntwo\x7f\x85three", "onetwothree"),
        ("한", "\u1112\u1161\u11ab"),
        (" \n ", ""),
    ],
)
def test_texts_are_normalised_as_in_cc_net(text, normal):
    assert normalise(text) == normal


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


def test_strange_text_has_a_higher_perplexity(files):
    usual, strange = Perplexity([files]).score([TEXT, "qqq zzz"], ["fr", "xx"])["perplexity.value"]
    assert strange > usual


@pytest.mark.parametrize(("part", "bound"), [("head", 200.0), ("middle", 400.0), ("60", 400.0)])
def test_bounds_come_from_a_file_of_cutoffs(files, tmp_path, part, bound):
    cutoffs = tmp_path / "cutoff.csv"
    cutoffs.write_text(CUTOFFS)
    scorer = Perplexity([f"zh={files}<={cutoffs}:{part}"])
    assert [rule.bound for rule in scorer.rules("zh") if rule.reason == "perplexity-high"] == [
        bound
    ]
    assert scorer.facts == Perplexity([f"zh={files}<={bound}"]).facts
    assert scorer.facts["perplexity"]["zh"]["bounds"] == {"max_value": bound, "min_value": None}
    assert scorer.rules("de") == ()
    assert scorer.engines["perplexity"].startswith("kenlm ")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("zh=one.arpa.bin<=800", "does not name two files"),
        ("zh={}<=0", '"0" is no perplexity above 0'),
        ("zh={}<=low", '"low" is no perplexity above 0'),
        ("zh={}<=/none.csv:head", "/none.csv: No such file or directory; expected cc_net's"),
        ("{}<=/none.csv:head", "a file of cutoffs needs a language"),
        ("zh=/none.bin+/none.model", "/none.bin: no such file; expected a KenLM model"),
    ],
)
def test_wrong_specs_are_refused(files, spec, message):
    with pytest.raises(UserError, match=message):
        Perplexity([spec.format(files)])


@pytest.mark.parametrize("part", ["en:head", "zh:45", "zh:some"])
def test_a_file_without_that_cutoff_is_refused(files, tmp_path, part):
    cutoffs = tmp_path / "cutoff.csv"
    cutoffs.write_text(CUTOFFS)
    language, part = part.split(":")
    with pytest.raises(UserError, match=f"has no cutoff of {language} at {part}: expected cc_net"):
        Perplexity([f"{language}={files}<={cutoffs}:{part}"])


def test_files_that_are_no_models_are_refused(files, tmp_path):
    damaged = tmp_path / "m"
    damaged.write_bytes(b"no model")
    kenlm, pieces = files.split("+")
    with pytest.raises(UserError, match="m is no KenLM model"):
        Perplexity([f"{damaged}+{pieces}<=9"])
    with pytest.raises(UserError, match="m is no SentencePiece model"):
        Perplexity([f"{kenlm}+{damaged}<=9"])


def test_a_language_has_one_model(files, tmp_path):
    copy = tmp_path / "copy.model"
    copy.write_bytes(PIECES.read_bytes())
    kenlm, _ = files.split("+")
    with pytest.raises(UserError, match="is another model for the same language"):
        Perplexity([f"zh={files}<=9", f"zh={kenlm}+{copy}>=1"])


def test_without_kenlm_the_error_names_the_extra(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "kenlm", None)
    with pytest.raises(UserError, match=r"pip install 'corpusmill\[quality\]'.*C\+\+ compiler"):
        Perplexity([f"{files}<=9"])
