"""Rows on rules, filters, duplicates, personal data and tokenizers."""

from tests.golden.corpora import tokenizer
from tests.golden.corpus_chinese import chinese
from tests.golden.corpus_cleaning import damaged
from tests.golden.corpus_copies import copies, versions
from tests.golden.corpus_english import english, english_code, english_lines
from tests.golden.corpus_filters import addresses, contaminated, edges
from tests.golden.corpus_languages import languages, own_labels
from tests.golden.corpus_models import (
    byte_tokenizer,
    classifier,
    language_model,
)
from tests.golden.corpus_own import own_code, own_texts, scored_texts
from tests.golden.corpus_personal import personal, questions
from tests.golden.corpus_scripts import byte_fallback, byte_level, pieces_of_words, scripts
from tests.golden.row import Row

_BYTES = "--tokenizer tiktoken:merges.txt --dedup none"
_ALL = "--languages all --language-threshold 0"
_PIECES = f"--tokenizer sentencepiece:tok.model {_ALL}"
_VERSIONS = (
    f"--input pages=versions --input others=others --dedup minhash --split-bytes 20000 {_PIECES}"
)
_SHOWN = "tests.golden.show_dataset"

_TOKENIZERS = {
    "pieces": "sentencepiece:tok.model",
    "merges": "tiktoken:merges.txt",
    "r50k": "tiktoken:r50k_base.tiktoken",
    "p50k": "tiktoken:p50k_base.tiktoken",
    "cl100k": "tiktoken:cl100k_base.tiktoken",
    "o200k": "tiktoken:o200k_base.tiktoken",
    "level": "hf:level.json",
    "fallback": "hf:fallback.json",
    "uncased": "hf:vocab.txt",
    "cased": "hf:cased",
    "plain": "hf:plain/vocab.txt",
}

ROWS = (
    Row(
        name="rules-english",
        about="every bound of gopher-repetition, gopher, c4, fineweb and glm, from both sides",
        setup=(byte_tokenizer, english, english_lines),
        commands=(
            f"pipelines.text --input english --output data {_BYTES} {_ALL} "
            "--quality en=gopher-repetition+gopher+c4+fineweb",
            f"pipelines.text --input lines --output lines-data {_BYTES} {_ALL} "
            "--quality fineweb+glm --threshold fineweb.max_newlines=0.2",
        ),
        fast=True,
    ),
    Row(
        name="rules-english-datatrove",
        about="the same texts by datatrove's variants of the rules, with spaCy's words",
        setup=(byte_tokenizer, english, english_code),
        commands=(
            f"pipelines.text --input rules=english --input code=code --output data {_BYTES} {_ALL} "
            "--quality en=gopher-repetition@datatrove+gopher@datatrove+c4@fineweb+fineweb@code",
            f"pipelines.text --input code --output c4 {_BYTES} {_ALL} --quality en=c4@datatrove",
        ),
    ),
    Row(
        name="rules-chinese",
        about="every bound of fineweb2-zh, from both sides",
        setup=(byte_tokenizer, chinese),
        commands=(
            f"pipelines.text --input chinese --output data {_BYTES} {_ALL} "
            "--quality zh=fineweb2-zh",
        ),
    ),
    Row(
        name="cleaning",
        about="every kind of damage to a text, and texts that only look damaged",
        setup=(byte_tokenizer, damaged),
        commands=(
            f"pipelines.text --input damaged --output data {_BYTES} {_ALL} --max-reject-rate 0.05",
            f"{_SHOWN} texts data",
            f"pipelines.text --input a=damaged --output plain {_BYTES} {_ALL} "
            "--max-reject-rate 0.05 --clean repair,a=whitespace",
            f"{_SHOWN} texts plain",
        ),
        fast=True,
    ),
    Row(
        name="languages",
        about="labels and scores of texts, the threshold from both sides, how many characters "
        "are read, a model with other labels",
        setup=(byte_tokenizer, languages, own_labels),
        commands=(
            f"pipelines.text --input languages --output data {_BYTES}",
            f"pipelines.text --input languages --output all {_BYTES} {_ALL} --lid-chars 1024",
            f"pipelines.text --input languages --output auto {_BYTES} --lid-chars auto "
            "--languages de,zh,ja,en --language-threshold 0.9027717113494873",
            f"pipelines.text --input languages --output above {_BYTES} "
            "--languages en --language-threshold 0.90277178",
            f"pipelines.text --input languages --output short {_BYTES} --lid-chars 20 {_ALL}",
            f"pipelines.text --input languages --output own {_BYTES} --lid-model glot.ftz {_ALL}",
            f"pipelines.text --input languages --output some {_BYTES} --lid-model glot.ftz "
            "--lid-chars auto --languages zho_Hans,eng_Latn --quality zho_Hans=glm "
            "--threshold zho_Hans:glm.min_chars=110",
            "pipelines.rethreshold some --threshold zho_Hans:glm.min_chars=120",
            "pipelines.rethreshold some --languages eng_Latn",
        ),
    ),
    Row(
        name="duplicates",
        about="equal texts, white space aside, in one segment, in several, and in two sources",
        setup=(tokenizer, copies),
        commands=(
            f"pipelines.text --input pages=copies --input again=again --output data {_PIECES}",
            f"{_SHOWN} duplicates data",
            f"pipelines.text --input pages=copies --input again=again --output many {_PIECES} "
            "--split-bytes 4000 --seed 5",
            f"{_SHOWN} duplicates many",
            "tests.golden.page_text many/report.html examples",
        ),
    ),
    Row(
        name="versions",
        about="similar texts: the threshold, chains, scripts, lengths",
        setup=(tokenizer, versions),
        commands=(
            "pipelines.text --input pages=versions --input long=long-pages --output data "
            f"--dedup minhash {_PIECES}",
            f"{_SHOWN} duplicates data",
        ),
        fast=True,
    ),
    Row(
        name="versions-bounds",
        about="similar texts in several segments, at a threshold that two pairs just reach or miss",
        setup=(tokenizer, versions),
        commands=(
            f"pipelines.text {_VERSIONS} --output at --minhash-threshold 0.7490196078431373",
            f"{_SHOWN} duplicates at",
            f"pipelines.text {_VERSIONS} --output above --minhash-threshold 0.7490196078431374",
        ),
    ),
    Row(
        name="versions-any-band",
        about="similar texts in several segments, where a shared band is enough",
        setup=(tokenizer, versions),
        commands=(
            f"pipelines.text {_VERSIONS} --output none --minhash-threshold 0",
            f"{_SHOWN} duplicates none",
        ),
    ),
    Row(
        name="personal",
        about="email addresses, phone numbers, identity numbers and IP addresses, masked or kept",
        setup=(byte_tokenizer, personal, questions),
        commands=(
            f"pipelines.text --input personal --output data {_BYTES} {_ALL} --pii mask",
            f"{_SHOWN} texts data",
            f"pipelines.zhidao --input questions --output asked {_BYTES} {_ALL} --pii mask",
            f"{_SHOWN} texts asked",
        ),
    ),
    Row(
        name="filters",
        about="runs of words of benchmarks, blocked addresses, and near misses of both",
        setup=(byte_tokenizer, contaminated, edges, addresses),
        commands=(
            f"pipelines.text --input exams --output data {_BYTES} {_ALL} "
            "--decontaminate bench.txt --decontaminate bench.jsonl",
            f"pipelines.text --input edges --output found {_BYTES} {_ALL} "
            "--decontaminate edges.txt",
            f"pipelines.text --input addresses --output pages {_BYTES} {_ALL} --provenance url "
            "--url-blocklist blocked.txt",
        ),
        fast=True,
    ),
    Row(
        name="own",
        about="user-defined filters, quality profile and word splitter, with bounds and options",
        setup=(byte_tokenizer, own_code, own_texts),
        commands=(
            f"pipelines.text --input texts --output data {_BYTES} {_ALL} "
            "--quality own_rules:few --filter own_filters:loud --filter own_filters:Length "
            "--filter clean=own_filters:Stars",
            f"{_SHOWN} texts data",
            f"pipelines.text --input texts --output bounds {_BYTES} {_ALL} "
            "--quality own_rules:few --threshold few.min_words=2,few.max_short=off "
            "--filter 'own_filters:Length?unit=2&min_chars=6&max_longest=off' "
            "--filter mask=own_filters:loud",
            "pipelines.rethreshold bounds "
            "--threshold few.min_words=1,Length.min_chars=1,Length.max_longest=off",
            f"pipelines.text --input japanese --output words {_BYTES} {_ALL} "
            "--quality ja@own_rules:pairs=gopher --threshold gopher.min_words=6,"
            "gopher.min_word_length=2",
        ),
    ),
    Row(
        name="scorers",
        requires=("kenlm",),
        about="a classifier and a language model, measured, and with bounds from both sides",
        setup=(byte_tokenizer, classifier, language_model, scored_texts),
        commands=(
            f"pipelines.text --input scored --output data {_BYTES} {_ALL} "
            "--classifier quality.bin:hq --classifier pairs.bin:fit "
            "--perplexity letters.arpa+letters.model",
            f"pipelines.text --input scored --output bounds {_BYTES} {_ALL} "
            "--classifier 'quality.bin:hq>=0.5000100135803223' --classifier 'quality.bin:cc<=0.7' "
            "--perplexity 'letters.arpa+letters.model<=14.537843704223633'",
            "pipelines.rethreshold bounds "
            "--threshold classifier.min_hq=0.3,perplexity.max_value=15",
            f"pipelines.text --input scored --output cutoffs {_BYTES} {_ALL} "
            "--classifier 'quality.bin:hq<=0.6' --classifier 'en=quality.bin:hq<=0.7310686' "
            "--perplexity 'en=letters.arpa+letters.model<=cutoff.csv:head' "
            "--perplexity 'id=letters.arpa+letters.model<=cutoff.csv:middle'",
        ),
    ),
    Row(
        name="tokenizers",
        about="ids of awkward texts by every kind of tokenizer, and the texts decoded from them",
        setup=(tokenizer, byte_level, pieces_of_words, byte_fallback, scripts),
        commands=(
            *(
                f"pipelines.text --input scripts --output {name} --tokenizer {spec} --dedup none "
                f"{_ALL}"
                for name, spec in _TOKENIZERS.items()
            ),
            f"{_SHOWN} texts cased",
        ),
    ),
)
