"""The steps of the commands' map as transforms: batches of texts in, those that pass out.

Each is checked where it is made, by loading what it needs, so that a mistake ends the script and
not the job. In the workers each is loaded once a process.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from pipelines.engine import beam
from pipelines.engine.beam import PCollection
from pipelines.engine.trial import try_in_child
from pipelines.filters.langid import LANGUAGES
from pipelines.quality.selection import Labels, parse_selection
from pipelines.segments.rows import DROPPED, KEPT, QUARANTINED, Verdict
from pipelines.steps import block, clean, decontaminate, identify, judge, mask, own, tokenize
from pipelines.steps.clock import Clock
from pipelines.steps.filter_spec import QUALITY, parse_filter
from pipelines.steps.step import Step, run
from pipelines.tokenizers.tokenizer import load_tokenizer
from pipelines.transforms.judged import Counters, Judged, OfBatches, judged_outputs, marked
from pipelines.transforms.model import Loaded, Model, facts_of
from shards.errors import UserError


class StepTransform(OfBatches):
    """A transform that judges batches by one step, or by several in one go."""

    needs: Sequence[str] = ("prompt", "text")
    """Columns that batches must have."""
    adds: Sequence[str] = ()
    """Columns that it adds, but for those of its metrics."""
    fields: Sequence[pa.Field] = ()
    """The columns of its metrics."""

    def __init__(self, models: Sequence[Model], *, needs: Sequence[str] = ()) -> None:
        super().__init__()
        self.models = tuple(models)
        """What the steps are made of, in order."""
        self.needs = (*self.needs, *needs)

    def expand(self, batches: PCollection[pa.RecordBatch]) -> Any:
        """Wire it."""
        judging = beam.ParDo(StepsDoFn(self.models, self.needs)).with_output_types(
            pa.RecordBatch, dropped=pa.RecordBatch, quarantined=pa.RecordBatch
        )
        tagged = batches | "Judge" >> judging.with_outputs(DROPPED, QUARANTINED, main=KEPT)
        return Judged(tagged[KEPT], tagged[DROPPED], tagged[QUARANTINED])


class StepsDoFn(beam.DoFn):
    """Judges batches."""

    def __init__(self, models: Sequence[Model], needs: Sequence[str]) -> None:
        self._models = models
        self._needs = needs
        self._steps: Sequence[Loaded] = ()

    def setup(self) -> None:
        """Load the models, if this process has not."""
        self._steps = [model.loaded() for model in self._models]
        self._counters = Counters()
        self._clock = Clock()
        steps = (one.step for one in self._steps)
        self._metrics = {field.name for step in steps if step for field in step.fields}

    def process(self, batch: pa.RecordBatch) -> Iterator[Any]:
        """Judge a batch."""
        missing = [name for name in self._needs if name not in batch.schema.names]
        if missing:
            raise UserError(
                f"a batch has no column {missing[0]!r}, which {self._steps[0].name} needs; it has "
                f"{', '.join(batch.schema.names)}. ReadCorpus and FromRows make whole batches; "
                "IdentifyLanguage adds language, which JudgeQuality needs"
            )
        kept, verdicts = run(batch, self._steps, self._clock)
        names = kept.schema.names
        if len({*names}) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise UserError(
                f"{self._steps[-1].name} adds a column {twice!r} to batches that have one: give "
                "each transform once, and call a field of rows otherwise"
            )
        if self._metrics:
            kept = marked(kept, self._metrics)
            verdicts = [Verdict(marked(one.batch, self._metrics), one.reasons) for one in verdicts]
        yield from judged_outputs(kept, verdicts, self._counters)


def _model(
    make: Callable[..., Step], *, parts: Sequence[str] = (), native: bool | None, **arguments: Any
) -> Model:
    """Return a model that can be loaded here, with what is known of it."""
    model = Model(make, arguments, uuid.uuid4().hex, parts=parts, native=native)
    step = model.loaded().step
    assert step is not None
    return Model(make, arguments, model.identity, parts=parts, native=native, known=facts_of(step))


def _check_names(values: Sequence[Any], *, call: str, example: str) -> None:
    """Check that names are given one by one, not in a list.

    Raises:
        UserError: Something is no text.
    """
    if odd := [value for value in values if not isinstance(value, str)]:
        raise UserError(f"{call}({odd[0]!r}): give names one by one, as in {call}({example})")


class DropAddresses(StepTransform):
    """Drops documents whose column `url` matches an entry of a list; reason `url-blocklist`."""

    def __init__(self, *paths: str) -> None:
        """Make the transform.

        Args:
            paths: Files of domains and URL prefixes, as --url-blocklist takes them.

        Raises:
            UserError: A file cannot be read, or an entry is invalid.
        """
        _check_names(paths, call="DropAddresses", example='"domains.txt", "urls.txt"')
        super().__init__([_model(block.Block, native=None, paths=paths)], needs=("url",))


class Clean(StepTransform):
    """Repairs the Unicode of each text and adds `repaired`; drops `empty` texts."""

    adds = ("repaired",)

    def __init__(self, *, native: bool | None = None) -> None:
        """Make the transform; `native` as in docs/transforms.md."""
        super().__init__([_model(clean.Clean, parts=("texts",), native=native)])


class IdentifyLanguage(StepTransform):
    """Adds `language` and `score`; drops what is in others (`language`, `language-score`)."""

    adds = ("language", "score")

    def __init__(
        self,
        *languages: str,
        threshold: float = 0.5,
        model: str = "",
        chars: int | str = 1024,
        native: bool | None = None,
    ) -> None:
        """Make the transform.

        Args:
            languages: Labels of the languages to keep, as in "zh", "en"; none, or "all": all.
            threshold: Lowest score, as --language-threshold.
            model: A fastText model, as --lid-model; "" for the installed one.
            chars: How many characters of a text are read, as --lid-chars.
            native: As in docs/transforms.md.

        Raises:
            UserError: A language is unknown, or the model cannot be loaded.
        """
        _check_names(languages, call="IdentifyLanguage", example='"zh", "en"')
        made = _model(
            identify.Identify,
            parts=("texts",),
            native=native,
            languages=languages or ("all",),
            threshold=threshold,
            model=model,
            chars=chars,
        )
        super().__init__([made])


class JudgeQuality(StepTransform):
    """Adds the metrics of the rules of each text's language; drops what breaks a rule."""

    def __init__(
        self,
        *rules: str,
        thresholds: Sequence[str] = (),
        model: str = "",
        classifier: Sequence[str] = (),
        perplexity: Sequence[str] = (),
        native: bool | None = None,
    ) -> None:
        """Make the transform.

        Args:
            rules: Profiles of languages, as in "en=gopher+c4", "zh=fineweb2-zh" (docs/quality.md).
            thresholds: Other bounds, as in "gopher.min_words=30".
            model: That of IdentifyLanguage, if it is not the installed one: languages are then its
                labels, which are not checked here.
            classifier: fastText models, as in "quality.bin:hq>=0.4" (docs/classifiers.md).
            perplexity: KenLM models, as in "zh=zh.arpa.bin+zh.sp.model<=800".
            native: As in docs/transforms.md.

        Raises:
            UserError: There is no such profile, bound or model.
        """
        _check_names(rules, call="JudgeQuality", example='"en=gopher+c4", "zh=fineweb2-zh"')
        labels = None if model else LANGUAGES
        selection = parse_selection(rules, thresholds, labels)
        names = {bound.profile.name for chosen in selection.values() for bound in chosen}
        made = _model(
            _prepared_judge,
            parts=("texts", *(f"profile {name}" for name in sorted(names))),
            native=native,
            rules=rules,
            thresholds=thresholds,
            labels=labels,
            scored_by=(tuple(classifier), tuple(perplexity)),
            languages=tuple(sorted({"en", "zh"} & {*selection} or {"en", "zh"})),
        )
        super().__init__([made], needs=("language",))
        step = made.loaded().step
        assert step is not None
        self.fields = step.fields
        """The columns of its metrics."""


def _prepared_judge(
    *,
    rules: Sequence[str],
    thresholds: Sequence[str],
    labels: Labels,
    scored_by: tuple[Sequence[str], Sequence[str]],
    languages: Sequence[str],
    compiled: bool = False,
) -> Step:
    step = judge.Judge(
        rules,
        thresholds=thresholds,
        labels=labels,
        scorers=judge.load_scorers(*scored_by),
        compiled=compiled,
    )
    if compiled:
        step.prepare(languages)
    return step


class Decontaminate(StepTransform):
    """Drops texts that share 13 words in a row with a benchmark; reason `contaminated`."""

    fields = decontaminate.Decontaminate.fields
    """The column of its metric."""

    def __init__(self, *paths: str, native: bool | None = None) -> None:
        """Make the transform.

        Args:
            paths: Texts of benchmarks, as --decontaminate takes them.
            native: As in docs/transforms.md.

        Raises:
            UserError: A file cannot be read, or holds no text that is long enough.
        """
        _check_names(paths, call="Decontaminate", example='"mmlu.jsonl", "ceval.jsonl"')
        made = _model(
            decontaminate.Decontaminate, parts=("benchmarks",), native=native, paths=paths
        )
        super().__init__([made])


class MaskPersonalData(StepTransform):
    """Replaces e-mail and IP addresses, phone and Chinese ID numbers, and counts them by kind."""

    fields = mask.Mask.fields
    """The columns of its counts."""

    def __init__(self) -> None:
        """Make the transform."""
        super().__init__([_model(mask.Mask, native=None)])


class OwnFilter(StepTransform):
    """Drops, measures or changes texts by a filter in a module of the user's (docs/own.md)."""

    def __init__(self, spec: str) -> None:
        """Make the transform.

        Args:
            spec: MODULE:NAME[?OPTION=VALUE&…], as --filter; its place is where it is put.

        Raises:
            UserError: It cannot be loaded.
        """
        made = _model(_own, native=None, text=spec)
        step = made.loaded().step
        assert isinstance(step, own.Own)
        super().__init__([made], needs=("language",) if step.bounds else ())
        self.fields = step.fields
        """The columns that it adds."""


def _own(*, text: str) -> Step:
    parsed = parse_filter(text)
    if parsed.after != QUALITY:
        raise UserError(
            f'OwnFilter("{text}"): its place is where it is put, so leave {parsed.after}= out'
        )
    (step,) = own.load_filters([parsed])
    return step


class Tokenize(StepTransform):
    """Adds `tokens`, eos last, and `prompt_tokens`; quarantines what its library fails on."""

    adds = ("tokens", "prompt_tokens")

    def __init__(self, tokenizer: str, *, native: bool | None = None) -> None:
        """Make the transform.

        Args:
            tokenizer: sentencepiece:FILE.model, tiktoken:NAME or hf:tokenizer.json, as --tokenizer.
            native: As in docs/transforms.md.

        Raises:
            UserError: It cannot be loaded.
        """
        try_in_child(lambda: load_tokenizer(tokenizer, fast=False), f"the tokenizer {tokenizer}")
        parts = ("pieces",) if tokenizer.startswith("sentencepiece:") else ()
        super().__init__([_model(tokenize.Tokenize, parts=parts, native=native, spec=tokenizer)])


class Steps(StepTransform):
    """Several of these transforms in one go, as the commands' map is: one function, three outputs.

    It gives what they give one after another, with all that they drop in one collection.
    """

    def __init__(self, *transforms: StepTransform) -> None:
        """Make the transform.

        Args:
            transforms: In the order in which texts meet them.

        Raises:
            UserError: There is none, or two of them add the same column.
        """
        if not transforms:
            raise UserError("Steps() has no step: give it some, as in Steps(Clean(), Tokenize(…))")
        super().__init__([model for one in transforms for model in one.models])
        made: dict[str, str] = {}
        needs: list[str] = []
        for one in transforms:
            name = type(one).__name__
            needs += [column for column in one.needs if column not in made]
            for column in (*one.adds, *(field.name for field in one.fields)):
                if column in made:
                    raise UserError(
                        f"Steps(…): {name} adds the column {column!r}, as {made[column]} before it "
                        "does: give each transform once"
                    )
                made[column] = name
        self.adds = tuple(column for one in transforms for column in one.adds)
        self.needs = tuple(dict.fromkeys(needs))
        fields = [field for one in transforms for field in getattr(one, "fields", ())]
        self.fields = tuple(fields)
        """The columns of their metrics."""
