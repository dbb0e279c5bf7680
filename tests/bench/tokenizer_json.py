"""The bench's tokenizers as tokenizer.json, which is what datatrove takes."""

from pathlib import Path

from sentencepiece import SentencePieceProcessor
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from pipelines.tokenizers.tokenizer import load_tokenizer


def write(spec: str, path: Path) -> Path:
    """Write the tokenizer of a `--tokenizer` spec, GPT-2's or a BPE of SentencePiece, to a path."""
    kind, _, name = spec.partition(":")
    made = _gpt2(Path(name)) if kind == "tiktoken" else _sentencepiece(Path(name))
    made.add_special_tokens(["<|endoftext|>"])
    path.parent.mkdir(parents=True, exist_ok=True)
    made.save(str(path))
    return path


def _gpt2(merges: Path) -> Tokenizer:
    made = Tokenizer(models.BPE.from_file(str(merges.with_name("vocab.json")), str(merges)))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return made


def _sentencepiece(path: Path) -> Tokenizer:
    model = SentencePieceProcessor(model_file=str(path))
    pieces = [model.id_to_piece(at) for at in range(model.vocab_size())]
    vocabulary = {piece: at for at, piece in enumerate(pieces)}
    merges = [
        (piece[:cut], piece[cut:])
        for piece in sorted(pieces, key=lambda each: -model.get_score(vocabulary[each]))
        for cut in range(1, len(piece))
        if piece[:cut] in vocabulary and piece[cut:] in vocabulary
    ]
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>", fuse_unk=True))
    # Close to the model's own nmt_nfkc; `alike` says how close.
    made.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    return made


def alike(spec: str, path: Path, texts: list[str]) -> float:
    """Return the share of texts to which both give the same number of tokens."""
    ours, theirs = load_tokenizer(spec), Tokenizer.from_file(str(path))
    _, lengths, _ = ours.encode_batch(texts)
    found = [len(each.ids) for each in theirs.encode_batch(texts)]
    return sum(a == b for a, b in zip(lengths.tolist(), found, strict=True)) / len(texts)
