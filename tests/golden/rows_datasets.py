"""Rows on the bundled sample, readers and corpora, and on appending, removing and exporting."""

from tests.golden import corpora
from tests.golden.row import Command, Row

_ANY = "--tokenizer sentencepiece:tok.model --languages all --language-threshold 0"
_EVERY = f"{_ANY} --dedup none --validation 0"

_LOSSY = f"{_EVERY} --max-reject-rate 1"
_CUT = f"{_LOSSY} --skip-unreadable"
_NARROW = (
    "pipelines.text --input narrow=narrow --input table=table --input own=narrow_own:own "
    f"--max-record-bytes 200 {_LOSSY}"
)


def _inputs(*inputs: str) -> str:
    return " ".join(f"--input {each}" for each in inputs)


_SHAPED = (
    ("zhihu", "zhihu"),
    ("zhidao", "zhidao"),
    ("baike", "baike"),
    ("cc_news", "cc_news"),
    ("openwebtext", "openwebtext"),
    ("pile", "pile"),
    ("fineweb", "fineweb"),
    ("wudao", "wudao"),
)

_READERS = (
    Row(
        name="sample",
        about="the bundled sample in several splits and shards, and the commands that show it",
        commands=(
            "pipelines.wudao --output data --shard-tokens 8192 --split-bytes 4096",
            "shards inspect data",
            "shards inspect data --doc 0",
            "shards inspect data --split validation",
            "shards verify data",
            "shards stats data",
        ),
        fast=True,
    ),
    Row(
        name="seams",
        about="the same records in every form of file, whatever bytes a split begins at",
        setup=(
            corpora.tokenizer,
            corpora.split_boundaries,
            corpora.lines,
            corpora.copy_scripts("checksums.py"),
        ),
        commands=(
            f"pipelines.text --input in --output by37 --split-bytes 37 {_EVERY}",
            f"pipelines.text --input in --output whole {_EVERY}",
            f"pipelines.text --input lines --newline <n> --output lines1 --split-bytes 1 {_EVERY}",
            "checksums.py by37 whole lines1",
        ),
    ),
    Row(
        name="packed",
        about="compressed files of several parts, of parts to be skipped, cut and harmed",
        setup=(corpora.tokenizer, corpora.packed),
        commands=(f"pipelines.text --input packed --output data {_CUT}",),
    ),
    Row(
        name="mixed",
        about="which files of a folder are read, how, and the log lines about the others",
        setup=(corpora.tokenizer, corpora.mixed),
        commands=(
            f"pipelines.text in --output data {_EVERY}",
            Command(
                words=f"pipelines.text in --output data --append {_EVERY}",
                prepare=corpora.more_mixed_files,
            ),
            f"pipelines.text in/a.jsonl in/.old/x.jsonl --output o --decontaminate bench {_EVERY}",
            f"pipelines.text --input in/*.JSONL in/.[a-z]*/* --output globs {_EVERY}",
            f"pipelines.wudao --input in --output wudao {_EVERY}",
            "pipelines.look in",
            "pipelines.train_tokenizer in --corpus text --vocab-size 600 --output new.model",
        ),
    ),
    Row(
        name="limits",
        about="records as long as the limit of their reader, and a byte longer",
        setup=(corpora.tokenizer, corpora.size_limits),
        commands=(
            f"{_NARROW} --output small --split-bytes 70",
            f"{_NARROW} --output all --split-bytes 5000 --input huge=huge",
        ),
    ),
    Row(
        name="tables",
        about="columns of many types, bytes that are not UTF-8, and a damaged row group",
        setup=(corpora.tokenizer, corpora.tables, corpora.copy_scripts("checksums.py")),
        commands=(
            f"pipelines.text --input tables --output plain {_LOSSY}",
            f"pipelines.text --input tables --output all --provenance x,when,day,much,inner.a "
            f"--split-bytes 900 {_LOSSY}",
            f"pipelines.text --input tables --output mended --bad-utf8 replace {_LOSSY}",
            "checksums.py plain all mended",
        ),
    ),
    Row(
        name="rejects",
        about="records with one fault each, and the options that repair some of them",
        setup=(corpora.tokenizer, corpora.broken),
        commands=(
            f"pipelines.text --input broken --output data --keep-dropped {_CUT}",
            f"pipelines.text --input broken --output seen --provenance x,why=y {_CUT}",
            "shards stats data",
            f"pipelines.text --input broken --output mended --bad-utf8 replace --nul remove {_CUT}",
            *(
                f"pipelines.text --input broken --output at-most-{most} --nul remove "
                f"--max-record-bytes {most} {_CUT}"
                for most in (corpora.LONG, 45, 44)
            ),
        ),
    ),
)

_SHAPES = (
    Row(
        name="corpora",
        about="every corpus reads its own format, with records on both sides of its rules",
        setup=(corpora.tokenizer, corpora.shapes),
        commands=(
            f"pipelines.text {_inputs(*(f'{name}={name}:{path}' for name, path in _SHAPED))} "
            f"--output data {_LOSSY} --keep-dropped",
        ),
        fast=True,
    ),
    Row(
        name="corpora-flags",
        about="the flags that only one corpus has",
        setup=(corpora.tokenizer, corpora.shapes),
        commands=(
            f"pipelines.zhihu --input zhihu --output o/zhihu --min-chars 5 --min-votes 3 {_LOSSY}",
            "pipelines.zhidao --input zhidao --output o/zhidao --min-chars 12 --min-best-chars 5 "
            + _LOSSY,
            f"pipelines.baike --input baike --output o/baike --separator ' | ' {_LOSSY}",
            f"pipelines.cc_news --input cc_news --output o/cc_news --min-chars 40 {_LOSSY}",
            "pipelines.openwebtext --input openwebtext --output o/owt --min-chars 30 "
            "--tokenizer sentencepiece:tok.model --validation 0 --max-reject-rate 1",
            "pipelines.pile --input pile --output o/glm --subsets glm --keep ArXiv=0.6,Github=1 "
            + _LOSSY,
            f"pipelines.pile --input pile --output o/deny --deny FreeLaw,ArXiv {_LOSSY}",
            f"pipelines.pile --input pile --output o/allow --allow FreeLaw,ArXiv --seed 4 {_LOSSY}",
            f"pipelines.fineweb --input fineweb --output o/fineweb --min-chars 12 {_LOSSY}",
        ),
    ),
    Row(
        name="texts-flags",
        about="the flags of pipelines.text and pipelines.wudao about fields and titles",
        setup=(corpora.tokenizer, corpora.shapes),
        commands=(
            "pipelines.text --input fields --output o/text --text-field body.text --id-field key.n "
            f"--provenance a,b.c,d=b --min-chars 5 {_LOSSY}",
            f"pipelines.text --input fields --format jsonl --output o/jsonl {_LOSSY}",
            f"pipelines.wudao --input wudao --output o/always --title always {_LOSSY}",
            f"pipelines.wudao --input wudao --output o/never --title never {_LOSSY}",
            "pipelines.wudao --input wudao --output o/other --title-separator ': ' --min-chars 50 "
            + _LOSSY,
        ),
    ),
)

_GROW = (
    "pipelines.text --input in --output data --provenance url,title --min-chars 60 --keep-dropped "
    f"--dedup minhash --shards 2 --validation 0.05 {_ANY} --max-reject-rate 0 --append"
)


def _shown(*manifests: str) -> tuple[str, ...]:
    return tuple(f"shards inspect {manifest}" for manifest in manifests)


_GROWTH = (
    Row(
        name="grown",
        about="generations that --append adds, without documents of earlier ones; refusals",
        setup=(corpora.tokenizer, corpora.first_day),
        commands=(
            _GROW,
            Command(words=_GROW, prepare=corpora.second_day),
            "tests.golden.show_dataset duplicates data",
            _GROW,
            Command(words=f"{_GROW} --seed 3", code=2),
            Command(words=_GROW, prepare=corpora.extend_file, code=2),
            f"{_GROW} --allow-changed",
            Command(words=_GROW, prepare=corpora.hide_file, code=2),
            f"{_GROW} --allow-changed",
            Command(words=_GROW, prepare=corpora.change_unnoticed, code=2),
            Command(words=f"{_GROW} --rehash", prepare=corpora.restore_file, code=2),
            Command(words=f"{_GROW} --rehash", prepare=corpora.undo_change),
            *_shown("data", "data@1", "data@2"),
            Command(words="shards inspect data@4", code=2),
            "shards verify data",
            "shards stats data@2",
        ),
    ),
    Row(
        name="removed",
        about="documents that are removed by every kind of name, with an --append in between",
        starts_from="grown",
        setup=(corpora.names_to_remove, corpora.copy_scripts("save_runs.py")),
        commands=(
            "save_runs.py",
            Command(words="shards remove data --documents names.txt --reason one", code=2),
            "shards remove data --documents names.txt --missing-ok --dry-run",
            "shards remove data --documents names.txt --missing-ok --reason one --report one.json",
            Command(words="shards remove data --id page-1 --id page-9 --reason two"),
            "shards remove data --url https://a.org/* --reason three",
            Command(words=_GROW, prepare=corpora.removed_texts_again),
            "shards remove data --id page-61 --reason four",
            *_shown("data", "data@3", "data@6"),
            "shards stats data",
            "shards verify data",
            "shards trace run.json --step 3",
            "shards trace run.json --step 12",
            "shards trace run.json --document page-9 --until 20",
            "shards trace followed.json --document page-2",
        ),
        pinned_files=("one.json", "run.json"),
    ),
    Row(
        name="compacted",
        about="compact, prune, and an --append that knows the documents of compacted generations",
        starts_from="removed",
        commands=(
            "shards compact data",
            *_shown("data"),
            Command(words="shards inspect data@3", code=2),
            "shards prune data --days 0 --dry-run",
            "shards prune data --days 0",
            "shards verify data",
            "shards compact data",
            *_shown("data"),
            "shards stats data",
            "shards verify data",
            Command(words=_GROW, prepare=corpora.compacted_texts_again),
            *_shown("data"),
        ),
    ),
    Row(
        name="erased",
        about="compact --erase, and an --append of a text that was erased",
        starts_from="removed",
        commands=(
            "shards compact data --erase",
            "shards verify data",
            *_shown("data"),
            Command(words=_GROW, prepare=corpora.erased_texts_again),
            "shards compact data --erase",
            "shards compact data",
            *_shown("data"),
            "shards megatron data",
        ),
    ),
    Row(
        name="overwritten",
        about="a dataset that replaces another one and continues its manifest numbers",
        starts_from="grown",
        commands=(
            Command(words=f"{_GROW.removesuffix(' --append')} --seed 5", code=2),
            f"{_GROW.removesuffix(' --append')} --seed 5 --overwrite",
            *_shown("data"),
            Command(words="shards inspect data@2", code=2),
            "shards prune data --days 0",
            "shards verify data",
        ),
    ),
    Row(
        name="interrupted",
        about="a generation that was begun before a removal, and is finished after it",
        starts_from="grown",
        setup=(corpora.copy_scripts("end_before_manifest.py"), corpora.removed_texts_again),
        commands=(
            Command(words=f"end_before_manifest.py {_GROW}", pins_output=False),
            "shards remove data --id page-2 --reason meanwhile",
            Command(words="shards compact data", code=2),
            _GROW,
            *_shown("data"),
            Command(words=_GROW, prepare=corpora.stale_ledger),
            "shards compact data",
            "shards verify data",
        ),
    ),
)

_FORMATS = (
    "llm.c --tokens-per-file 4k --prefix mine",
    "datatrove",
    "datatrove --copy --source text",
    "olmo",
    "numpy",
)
_NODE = "shards place data --nodes 2,1,1 --node 2 --scatters 8 --to two"
_USES = (
    Row(
        name="sampled",
        about="fractions, seeds, held-out documents and numbers of shards",
        commands=(
            "pipelines.wudao --output a --sample 0.3 --seed 5 --shards 3 --validation 0.05",
            "pipelines.wudao --output b --sample 60% --seed 5 --validation 0 --shard-tokens 20k",
            "shards stats a",
        ),
    ),
    Row(
        name="exported",
        about="every export format, with removed documents and with prompts that carry no loss",
        starts_from="removed",
        setup=(corpora.shapes,),
        commands=(
            f"pipelines.zhihu --input zhihu --output asked --min-chars 5 {_LOSSY} --shards 2",
            *(
                f"shards export data --output text/{at} --to {form}"
                for at, form in enumerate(_FORMATS)
            ),
            *(
                f"shards export asked --output asked-as/{at} --to {form}"
                for at, form in enumerate(_FORMATS)
                if "--source" not in form
            ),
            "shards export data@1 --output first --to numpy",
            Command(words="shards megatron data", code=2),
            "shards megatron asked",
            "shards megatron asked:zhihu=0.25 asked@1=0.75 --output blend.json",
        ),
        pinned_files=("text/**/*", "asked-as/**/*", "first/**/*", "blend.json"),
    ),
    Row(
        name="placed",
        about="the share of each node, and the findings of a check",
        starts_from="sample",
        commands=(
            "shards place data --nodes 2,1,1 --node 0 --scatters 16 --to one",
            _NODE,
            _NODE,
            "shards place data --nodes 1,1 --node 1 --scatters 4 --list",
            f"{_NODE} --check",
            Command(words=f"{_NODE} --check", code=1, prepare=corpora.flip_byte),
            Command(words="shards verify two", code=1),
            _NODE,
            "shards verify two",
            "shards verify one",
        ),
    ),
    Row(
        name="drawn",
        about="which windows samplers draw: mixtures, weights, epochs, scatters, switches, batches",
        starts_from="grown",
        setup=(corpora.shapes, corpora.copy_scripts("draw.py")),
        commands=(
            f"pipelines.zhihu --input zhihu --output asked --min-chars 5 {_LOSSY}",
            "draw.py",
        ),
    ),
)

_TOOLS = (
    Row(
        name="plan",
        about="the estimates of --plan, and of rethreshold for other thresholds",
        starts_from="sample",
        commands=(
            "pipelines.wudao --output other --plan",
            "pipelines.wudao --output other --plan --split-bytes 20k --sample 0.5 --dedup minhash",
            "pipelines.rethreshold data --language-threshold 0.9",
            "pipelines.rethreshold data --languages zh --length 128 --objective causal --json",
            "pipelines.rethreshold data --languages all --language-threshold 0 --length 128",
        ),
    ),
    Row(
        name="look",
        about="the files at a path, their fields and faults, and the corpus that reads them",
        setup=(corpora.tokenizer, corpora.shapes, corpora.classifier_inputs),
        commands=(
            "pipelines.look mixed zhihu zhidao baike cc_news openwebtext fineweb wudao pile",
            "pipelines.look mixed fields --json",
        ),
    ),
    Row(
        name="learnt",
        about="a trained tokenizer, a trained classifier, a copied corpus, a report written again",
        starts_from="sample",
        setup=(corpora.classifier_inputs, corpora.damaged_array),
        commands=(
            "pipelines.cp_wudao 2 --output copied",
            "pipelines.cp_wudao --documents 40 --output toy --seed 3",
            "pipelines.cp_wudao --fraction 10% --output tenth",
            "pipelines.train_tokenizer --input copied/*.json --output bpe.model --vocab-size 1500 "
            "--sample-bytes 60k",
            "pipelines.train_tokenizer --input good --corpus text --output uni.model "
            "--vocab-size 700 --sample-bytes 60k --model-type unigram --normalization nmt_nfkc "
            "--character-coverage 0.99 --seed 2",
            "pipelines.train_classifier --positive good --negative bad --output quality.bin "
            "--dimensions 8 --buckets 1000 --epochs 3 --held-out 0.2",
            "pipelines.train_classifier --positive zh=wudao:copied --negative fields "
            "--text-field body.text --positive-label wiki --character-ngrams 3 --output wiki.bin "
            "--dimensions 8 --buckets 1000 --epochs 9 --learning-rate 0.5",
            "pipelines.cp_wudao 3 --output copied",
            "pipelines.cp_wudao 1 --output copied",
            "pipelines.cp_wudao --fraction 1 --input harmed-array --output whole",
            "pipelines.report data --output page.html --corpus-size 200GB",
            "tests.golden.page_text page.html "
            "funnel subsets distributions duplicates unreadable-records settings",
        ),
        # The bytes of quality.bin depend on the processor, but the command prints the model's
        # figures.
        pinned_files=("*.model", "copied/*", "toy/*", "tenth/*", "whole/*"),
    ),
)

ROWS = (*_READERS, *_SHAPES, *_GROWTH, *_USES, *_TOOLS)
