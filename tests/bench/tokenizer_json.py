"""Writes the tokenizers of benchmarks as tokenizer.json, for datatrove."""

from pathlib import Path

from sentencepiece import SentencePieceProcessor
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from pipelines.tokenizers.tokenizer import load_tokenizer


def write(spec: str, path: Path) -> Path:
    """Write the tokenizer that a `--tokenizer` value names: GPT-2's or a SentencePiece BPE."""
    kind, _, name = spec.partition(":")
    tokenizer = _gpt2(Path(name)) if kind == "tiktoken" else _sentencepiece(Path(name))
    tokenizer.add_special_tokens(["<|endoftext|>"])
    path.parent.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(path))
    return path


def _gpt2(merges: Path) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE.from_file(str(merges.with_name("vocab.json")), str(merges)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


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
    tokenizer = Tokenizer(
        models.BPE(vocab=vocabulary, merges=merges, unk_token="<unk>", fuse_unk=True)
    )
    # This is close to the model's nmt_nfkc, and `agreement` measures how close.
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer


def agreement(spec: str, path: Path, texts: list[str]) -> float:
    """Return the share of texts to which both tokenizers give the same number of tokens."""
    ours, theirs = load_tokenizer(spec), Tokenizer.from_file(str(path))
    _, lengths, _ = ours.encode_batch(texts)
    found = [len(each.ids) for each in theirs.encode_batch(texts)]
    return sum(a == b for a, b in zip(lengths.tolist(), found, strict=True)) / len(texts)
