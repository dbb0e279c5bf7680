"""The Python API for runs, with the same work and options as the command of a corpus.

    build(WudaoOptions(…))    ─ job/command.py ─▶  Built         the dataset that a run made
    estimate("wudao", …)      ─ job/estimate.py ─▶ Estimated     the estimated cost of a run

The options are the dataclass of the command. Keywords are fields of this dataclass or flags of
Beam; they are parsed like a command line (corpus/keywords.py).
"""

import importlib
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from html import escape
from types import ModuleType
from typing import Any

import pyarrow as pa

from pipelines.corpus.code import check_unchanged
from pipelines.corpus.keywords import options_of_call
from pipelines.corpus.options import Options
from pipelines.corpus.part import is_share
from pipelines.corpus.sources import user_corpus_modules
from pipelines.corpus.spec import find_corpus, load_spec
from pipelines.execute.runner import preserve_log_level
from pipelines.job.command import checked, run_corpus
from pipelines.quality import QualityRules
from pipelines.report.write import PAGE
from pipelines.steps.filter_spec import parse_filter
from shards.commands.output import quantity, visible_line
from shards.errors import UserError
from shards.maintenance.compact import sum_accounts
from shards.manifest import TRAIN, VALIDATION, Manifest, sum_shards
from shards.reader import Dataset
from shards.storage.files import size_if_there
from shards.storage.remote import AnyPath
from shards.summary import html_table


@dataclass(frozen=True, kw_only=True, eq=False)
class Built:
    """The dataset that a run made, added to, or found complete."""

    dataset: Dataset
    """The dataset, opened."""
    account: Mapping[str, Any]
    """Counts by source, summed over all generations: records read, kept, dropped by reason and
    quarantined by reason, and bytes by verdict."""
    report: AnyPath | None
    """The path of the dataset's report.html, if there is one."""
    seconds: float
    """How long the call took, in seconds."""

    @property
    def manifest(self) -> Manifest:
        """The manifest of the dataset."""
        return self.dataset.manifest

    @cached_property
    def table(self) -> pa.Table:
        """The account as rows of source, verdict, reason and records."""
        rows = [
            {"source": source, "verdict": verdict, "reason": reason, "records": records}
            for source, account in self.account.items()
            for verdict in ("kept", "dropped", "quarantined")
            for reason, records in _reasons(account[verdict]).items()
        ]
        return pa.Table.from_pylist(rows)

    def __str__(self) -> str:
        lines = [
            f"{source}: {account['read']:,} read = {account['kept']:,} kept + "
            f"{sum(account['dropped'].values()):,} dropped + "
            f"{sum(account['quarantined'].values()):,} quarantined"
            for source, account in self.account.items()
        ]
        for split in (TRAIN, VALIDATION):
            sums = sum_shards(self.manifest.shards(split=split))
            lines.append(f"{split}: {quantity(sums.documents, 'document')}, {sums.tokens:,} tokens")
        lines.append(f"dataset in {self.dataset.shown_directory}, with {PAGE}")
        return "\n".join(map(visible_line, lines))

    def __repr__(self) -> str:
        return f"Built({self.dataset!r}, {self.seconds:.1f} s)"

    def _repr_html_(self) -> str:
        rows = zip(*self.table.to_pydict().values(), strict=True)
        return self.dataset._repr_html_() + html_table([self.table.column_names, *rows])


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimated:
    """The estimated cost of a run, based on a timed sample of its input."""

    text: str
    """The lines that `--plan` prints."""
    workers: int
    seconds: float
    """Duration of the whole run in seconds, on `workers` workers as fast as this machine's."""
    documents: int
    """Documents that the run keeps; only duplicates within the sample are accounted for."""
    tokens: int
    shards: int
    disk_bytes: int
    """The peak disk usage of shards and intermediate files, in bytes."""

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        figures = (
            f"{field.name}={round(getattr(self, field.name), 1):,}" for field in fields(self)[1:]
        )
        return f"Estimated({', '.join(figures)})"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


def build(
    corpus: str | ModuleType | Options, /, *, runner_flags: Sequence[str] = (), **options: Any
) -> Built:
    """Make a dataset or add to one, as `python -m pipelines.CORPUS` does, and return it.

        build("wudao", input="folder", tokenizer="tiktoken:gpt2")
        build(WudaoOptions(input=("folder",), tokenizer="tiktoken:gpt2"))

    Keywords are the flags of the command, with "_" instead of "-". Values are Python values or the
    strings that the flags accept: languages=["zh", "en"] or "zh,en", shard_tokens=100_000_000 or
    "100M", input="folder" or {"zh": "one folder", "en": "pile:another one"}. To resume an
    interrupted call, repeat it; if the dataset is complete, the call returns it.

    Args:
        corpus: The name of a corpus (wudao, pile, fineweb, text, ...); a module of yours that
            defines a corpus, or the name of the module; or an options object of the class that the
            corpus's module defines.
        runner_flags: Flags that only Beam's runner knows; on a command line they follow --.
        options: Options of the corpus (pipelines.wudao.WudaoOptions has those of wudao), and flags
            of Beam such as runner="FlinkRunner", flink_master="HOST:PORT".

    Raises:
        UserError: The dataset cannot be made; the message is the same as the command's, and names
            options as flags.
    """
    started = time.monotonic()
    module, chosen = _checked_options(corpus, options, runner_flags=runner_flags)
    if is_share(chosen.part):
        raise UserError(
            "part processes a share and makes no dataset: use the command on each machine "
            "(docs/large.md); only part='merge' can be called from Python"
        )
    if chosen.plan:
        raise UserError("plan makes no dataset: leave it out, or call estimate() instead")
    with preserve_log_level():
        made = run_corpus(module, chosen)
    output = chosen.output
    if made is None:
        raise UserError(
            f"{output}: no dataset was made, because the input has no readable file yet. Call "
            "again once it has one"
        )
    dataset = Dataset.open(output).as_of(made.number)
    generations = [generation.accounting for generation in made.generations]
    return Built(
        dataset=dataset,
        account=sum_accounts(generations),
        report=output / PAGE if size_if_there(output / PAGE) >= 0 else None,
        seconds=time.monotonic() - started,
    )


def estimate(corpus: str | ModuleType | Options, /, **options: Any) -> Estimated:
    """Estimate what `build` costs with the same options, based on a timed sample, like `--plan`.

    Nothing is written to the output.

    Args:
        corpus: As for build.
        options: As for build, except the flags of Beam's runners.

    Raises:
        UserError: The input cannot be read, or an option is not valid.
    """
    module, chosen = _checked_options(corpus, options, plan=True)
    from pipelines.job.estimate import estimate_lines, estimate_run  # noqa: PLC0415

    estimated = estimate_run(module, chosen)
    return Estimated(
        text="\n".join(map(visible_line, estimate_lines(estimated, chosen))),
        workers=estimated.workers,
        seconds=estimated.seconds,
        documents=estimated.documents,
        tokens=estimated.costs.tokens,
        shards=estimated.shards,
        disk_bytes=estimated.disk_bytes,
    )


def _checked_options(
    corpus: str | ModuleType | Options,
    values: Mapping[str, Any],
    *,
    runner_flags: Sequence[str] = (),
    plan: bool = False,
) -> tuple[str, Options]:
    """Return the name of a corpus's module, and the options as its command would parse them."""
    if isinstance(corpus, Options):
        if values or runner_flags:
            raise UserError("pass either an options object, or the name of a corpus and keywords")
        module, options = type(corpus).__module__, corpus
    else:
        module = _module_of(corpus)
        options = options_of_call(
            load_spec(module).options, values, module=module, runner_flags=runner_flags
        )
    if options.watch:
        raise UserError(
            f"a watch does not return: run the command python -m {module} --watch "
            "(docs/growing.md); append=True adds the new files and returns"
        )
    filters = (parse_filter(spec).module for spec in options.filter)
    quality = QualityRules.parse(options.quality, options.threshold, labels=None)
    for named in (module, *filters, *quality.custom_code, *user_corpus_modules(options)):
        _check_not_script(named)
        if named in sys.modules:
            check_unchanged(named)
    return module, checked(replace(options, plan=options.plan or plan), load_spec(module))


def _module_of(corpus: str | ModuleType) -> str:
    """Return the name of a corpus's module, given the corpus's name or the module itself."""
    name = corpus if isinstance(corpus, str) else corpus.__name__
    _check_not_script(name)
    importlib.invalidate_caches()  # a notebook cell may have just written the module
    return find_corpus(name, where="the call")


def _check_not_script(name: str) -> None:
    """Check that worker processes can import a custom module."""
    if name == "__main__":
        raise UserError(
            "your own corpus or filter cannot be in the running script or notebook (__main__), "
            "because worker processes import it by name. Put it into a separate file next to it, "
            "such as notes.py, and name that module"
        )


def _reasons(records: int | Mapping[str, int]) -> Mapping[str, int]:
    return records if isinstance(records, Mapping) else {"": records}
