"""The languages that a run can identify, as labels of fastText's lid.176 or of a given model."""

import re
from collections.abc import Collection, Iterable

from shards.commands.spelling import nearest
from shards.errors import UserError

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
"""The labels of lid.176: the ISO 639-1 code of a language, or the 639-3 code of a language that has
no 639-1 code."""

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
"""Names of languages and countries that people write instead of labels."""

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
"""The label of lid.176 for each ISO 639-3 code that differs from the label."""

_MAX_NAMED = 5


def parse_languages(
    codes: Iterable[str], labels: Collection[str] | None = LANGUAGES
) -> frozenset[str]:
    """Check that all language codes are labels of the model, and return the set of codes.

    Args:
        codes: The codes, as the user wrote them.
        labels: The labels of the model; None if they are unknown, so that any code is accepted.

    Raises:
        UserError: A code is not a label of the model, so every document would be dropped.
    """
    languages = frozenset(code.strip() for code in codes)
    if not languages:
        raise UserError('No language is named: write at least one code such as "zh" or "en".')
    for code in sorted(languages - {*(languages if labels is None else labels)}):
        if labels is None or LANGUAGES.issuperset(labels):
            raise UserError(
                f'"{code}" is not a language code of the fastText model lid.176: {_hint(code)}.'
            )
        hint = _nearest(code, labels)
        raise UserError(f'"{code}" is not a label of this language model: {hint}.')
    return languages


def plain_code(label: str) -> str:
    """Convert a label of any model to the label that lid.176 has for the same language.

    zho_Hans, cmn_Hani and zh-CN become zh. A label whose language lid.176 does not know is returned
    unchanged.
    """
    if label in LANGUAGES:
        return label
    code = re.split("[_-]", label)[0]
    code = _PLAIN.get(code, code)
    return code if code in LANGUAGES else label


def _meant(code: str) -> str:
    """Return the label of lid.176 that a word probably means, or else the word."""
    first = re.split("[_-]", code.lower())[0]
    return plain_code(_OTHER_NAMES.get(first, first))


def _hint(code: str) -> str:
    near = nearest(code, _OTHER_NAMES, most=1, likeness=0.8)
    label = _meant(near[0] if near else code)
    return f'write "{label}"' if label in LANGUAGES else f"the codes are on {MODEL_PAGE}"


def _nearest(code: str, labels: Collection[str]) -> str:
    meant = _meant(code)
    close = [label for label in sorted(labels) if plain_code(label) == meant]
    close = close[:_MAX_NAMED] or nearest(code, labels)
    few = sorted(labels)[:_MAX_NAMED]
    rest = " …" if len(labels) > len(few) else ""
    advice = f"did you mean {' or '.join(close)}? " if close else ""
    return f"{advice}it has {len(labels)} labels: {', '.join(few)}{rest}"
