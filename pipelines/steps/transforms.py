"""The steps of the commands as Beam transforms of batches of texts.

Each transform is checked by loading its models when it is made, so that a mistake fails in the
script and not in the job. Each worker process loads a step once.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from pipelines.corpus.clean_level import parse_levels
from pipelines.corpus.languages import LANGUAGES
from pipelines.execute import beam
from pipelines.execute.beam import PCollection
from pipelines.quality.selection import overrides_for, parse_selection
from pipelines.segments.rows import DROPPED, KEPT, QUARANTINED
from pipelines.steps import (
    blocklist,
    clean,
    decontaminate,
    judge,
    langid,
    pii,
    tokenize,
    user_filter,
)
from pipelines.steps.filter_spec import QUALITY, FilterSpec, parse_filter
from pipelines.steps.outputs import BatchTransform, FilterOutputs, tagged_outputs
from pipelines.steps.rule_files import log_remarks
from pipelines.steps.spec import StepSpec
from pipelines.steps.step import CpuClock, Step, apply_steps
from shards.errors import UserError


class Steps(BatchTransform):
    """Applies several of these transforms in one DoFn with three outputs, as the commands do.

    The result is that of the transforms one after another, with all dropped rows in one collection.
    Each of the other transforms is a Steps with one step.
    """

    def __init__(self, *steps: "Steps | StepSpec") -> None:
        """Make the transform.

        Args:
            steps: The transforms, in order of application.

        Raises:
            UserError: There are no steps, or two of them add the same column.
        """
        if not steps:
            raise UserError("Steps() has no steps: give some, as in Steps(Clean(), Tokenize(…))")
        super().__init__()
        parts = [
            one.specs if isinstance(one, Steps) else (one.checked(type(self).__name__),)
            for one in steps
        ]
        self.specs: tuple[StepSpec, ...] = tuple(itertools.chain(*parts))
        """The specs of the steps, in order."""
        self.adds = tuple(column for spec in self.specs for column in spec.adds)
        """The columns that the steps add, except for those of metrics."""
        self.fields = tuple(field for spec in self.specs for field in spec.fields)
        """The columns of the steps' metrics."""
        made: dict[str, str] = {}
        needs: dict[str, None] = {}
        for spec in self.specs:
            needs |= dict.fromkeys(name for name in spec.needs if name not in made)
            for column in (*spec.adds, *(field.name for field in spec.fields)):
                if column in made:
                    raise UserError(
                        f"Steps(…): {spec.name} adds the column {column!r}, and so does "
                        f"{made[column]} before it: give each transform once"
                    )
                made[column] = spec.name
        self.needs = tuple(needs)
        """The columns that batches must have."""

    def expand(self, batches: PCollection[pa.RecordBatch]) -> Any:
        """Apply the steps and return their three outputs."""
        judging = beam.ParDo(StepsDoFn(self.specs, self.needs)).with_output_types(
            pa.RecordBatch, dropped=pa.RecordBatch, quarantined=pa.RecordBatch
        )
        tagged = batches | "Judge" >> judging.with_outputs(DROPPED, QUARANTINED, main=KEPT)
        return FilterOutputs(tagged[KEPT], tagged[DROPPED], tagged[QUARANTINED])


class StepsDoFn(beam.DoFn):
    """Applies steps to batches."""

    def __init__(self, specs: Sequence[StepSpec], needs: Sequence[str]) -> None:
        self._specs = specs
        self._needs = needs

    def setup(self) -> None:
        """Load the steps, unless this process has loaded them."""
        self._steps = [spec.loaded() for spec in self._specs]
        self._clock = CpuClock()
        self._metrics = {field.name for spec in self._specs for field in spec.fields}

    def process(self, batch: pa.RecordBatch) -> Iterator[Any]:
        """Yield the rows of a batch that are kept, and the other rows with tags."""
        missing = [name for name in self._needs if name not in batch.schema.names]
        if missing:
            raise UserError(
                f"a batch has no column {missing[0]!r}, which {self._steps[0].name} needs; it has "
                f"{', '.join(batch.schema.names)}. ReadCorpus and FromRows make complete batches; "
                "IdentifyLanguage adds the language, which JudgeQuality needs"
            )
        kept, results = apply_steps(batch, self._steps, self._clock)
        names = kept.schema.names
        if len({*names}) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise UserError(
                f"{self._steps[-1].name} adds a column {twice!r} to batches that already have one: "
                "give each transform once, and rename fields of rows with this name"
            )
        yield from tagged_outputs(kept, results, metrics=self._metrics)


def _check_names(values: Sequence[Any], *, call: str, example: str) -> None:
    """Check that names are given one by one, not in a list.

    Raises:
        UserError: An argument is not a string.
    """
    if odd := [value for value in values if not isinstance(value, str)]:
        raise UserError(f"{call}({odd[0]!r}): give names one by one, as in {call}({example})")


class FilterUrls(Steps):
    """Drops documents whose `url` matches an entry of a blocklist, with reason `url-blocklist`."""

    def __init__(self, *paths: str) -> None:
        """Make the transform.

        Args:
            paths: Files of domains and URL prefixes, as in --url-blocklist.

        Raises:
            UserError: A file cannot be read, or an entry is invalid.
        """
        _check_names(paths, call="FilterUrls", example='"domains.txt", "urls.txt"')
        log_remarks(paths)
        super().__init__(StepSpec(make=blocklist.BlockStep, arguments={"paths": paths}))


class Clean(Steps):
    """Cleans each text, adds `repaired` (whether the text changed), and drops `empty` texts."""

    def __init__(self, level: str = "") -> None:
        """Make the transform.

        Args:
            level: none, whitespace or repair, as in --clean; "" for the level of the corpus.

        Raises:
            UserError: The level does not exist.
        """
        parse_levels([level] if level else [])
        super().__init__(StepSpec(make=clean.CleanStep, arguments={"level": level}))


class IdentifyLanguage(Steps):
    """Adds `language` and `score`, and drops texts in other languages or with low scores.

    The reasons are `language` and `language-score`.
    """

    def __init__(
        self,
        *languages: str,
        threshold: float = 0.5,
        model: str = "",
        chars: int | str = 0,
    ) -> None:
        """Make the transform.

        Args:
            languages: The labels of the languages to keep, such as "zh", "en"; "all" or no label
                keeps all.
            threshold: The minimum score, as in --language-threshold.
            model: A fastText model, as in --lid-model; "" for the installed one.
            chars: How many characters of a text are read, as in --lid-chars; 0 means all.

        Raises:
            UserError: A language is unknown, or the model cannot be loaded.
        """
        _check_names(languages, call="IdentifyLanguage", example='"zh", "en"')
        arguments = {
            "languages": languages or ("all",),
            "threshold": threshold,
            "model": model,
            "chars": chars,
        }
        super().__init__(StepSpec(make=langid.IdentifyStep, arguments=arguments))


class JudgeQuality(Steps):
    """Adds the metrics of the rules for each text's language; drops texts that break a rule."""

    def __init__(
        self,
        *rules: str,
        thresholds: Sequence[str] = (),
        model: str = "",
        classifier: Sequence[str] = (),
        perplexity: Sequence[str] = (),
    ) -> None:
        """Make the transform.

        Args:
            rules: Profiles of languages, as in "en=gopher+c4", "zh=fineweb2-zh" (docs/quality.md).
            thresholds: Other bounds, as in "gopher.min_words=30".
            model: The model of IdentifyLanguage, unless it is the installed one. Languages are then
                labels of this model, and are not checked.
            classifier: fastText models, as in "quality.bin:hq>=0.4" (docs/quality.md).
            perplexity: KenLM models, as in "zh=zh.arpa.bin+zh.sp.model<=800".

        Raises:
            UserError: A profile, bound or model does not exist.
        """
        _check_names(rules, call="JudgeQuality", example='"en=gopher+c4", "zh=fineweb2-zh"')
        labels = None if model else LANGUAGES
        # A mistake is reported before any model is loaded.
        parse_selection(rules, overrides_for("", thresholds), labels)
        arguments = {
            "rules": rules,
            "thresholds": thresholds,
            "labels": labels,
            "scored_by": (tuple(classifier), tuple(perplexity)),
        }
        super().__init__(StepSpec(make=_judge, arguments=arguments))


def _judge(*, scored_by: tuple[Sequence[str], Sequence[str]], **arguments: Any) -> Step:
    scorers = judge.load_scorers(*scored_by, arguments["thresholds"])
    return judge.QualityFilter(**arguments, scorers=scorers)


class Decontaminate(Steps):
    """Drops texts that share 13 words in a row with a benchmark; the reason is `contaminated`."""

    def __init__(self, *paths: str) -> None:
        """Make the transform.

        Args:
            paths: Files of benchmarks, as in --decontaminate.

        Raises:
            UserError: A file cannot be read, or no text is long enough.
        """
        _check_names(paths, call="Decontaminate", example='"mmlu.jsonl", "ceval.jsonl"')
        log_remarks(paths)
        super().__init__(StepSpec(make=decontaminate.DecontaminateStep, arguments={"paths": paths}))


class MaskPersonalData(Steps):
    """Replaces e-mail and IP addresses, phone and Chinese ID numbers, and counts them by kind."""

    def __init__(self) -> None:
        """Make the transform."""
        super().__init__(StepSpec(make=pii.MaskStep))


class UserFilter(Steps):
    """Drops, measures or changes texts with a custom filter (docs/own.md)."""

    def __init__(self, spec: str) -> None:
        """Make the transform.

        Args:
            spec: MODULE:NAME[?OPTION=VALUE&…], as in --filter, but without AFTER=.

        Raises:
            UserError: The filter cannot be loaded.
        """
        parsed = parse_filter(spec)
        if parsed.after != QUALITY:
            raise UserError(
                f'UserFilter("{spec}"): leave out {parsed.after}=, the pipeline decides its place'
            )
        super().__init__(StepSpec(make=_user_filter, arguments={"spec": parsed}))


def _user_filter(spec: FilterSpec) -> Step:
    (step,) = user_filter.load_filters([spec])
    return step


class Tokenize(Steps):
    """Adds `tokens`, which end with eos, and counts; quarantines texts that cannot be encoded."""

    def __init__(self, tokenizer: str, *, eos: str = "") -> None:
        """Make the transform.

        Args:
            tokenizer: The value of --tokenizer: sentencepiece:FILE.model, tiktoken:NAME or
                hf:tokenizer.json.
            eos: The token that ends each document, as in --eos.

        Raises:
            UserError: The tokenizer cannot be loaded.
        """
        arguments = {"spec": tokenizer, "eos": eos}
        super().__init__(StepSpec(make=tokenize.TokenizeStep, arguments=arguments))
