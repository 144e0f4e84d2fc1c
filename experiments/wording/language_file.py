"""A language of a study's own: the file with every sentence of its pages, as a template and as it is read."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from experiments.errors import Problem
from experiments.wording.language_rules import TAG, direction_of, forms_of
from experiments.wording.sentence_tables import COMMON, LANGUAGES, page_table_of, sentences_in, table_of
from experiments.wording.sentences import COUNTED

KEY = "interface.words"
NAMED = 3
"""So many places of a kind are named."""
HEAD = """\
# Every sentence of the pages around the texts of a study. Above each stands the English one, with Markdown
# (**, ##) where it may stand. What stands in braces is filled in; each form of a sentence has all of it.
# In study.toml:  [interface] words = "{file}"
# Forms of a count in this language: {forms}. It is written {direction}.
language = {language}
# Who wrote these sentences: people, or a program and who read them again.
translator = ""
"""
PARTS: Mapping[str, str] = {
    COMMON: "The page in the browser: buttons, titles, and what it says when something goes wrong.",
    "pages": "Pages before, between and after the trials, and what pictures are called when heard.",
    "entry": "Why somebody is not let in, and the preview on a platform.",
    "pay": "What people are paid. `point` and `group` stand in amounts: 1,234.50.",
    "sight": "Before the consent, for those who cannot see pictures.",
    "legend": "What colours mean, by the names of the palettes below.",
    "practice": "Sorted in the practice of studies of texts: an animal is A, a plant B. None has an opinion.",
}
VOICE = "What the same pages say otherwise in studies that speak so."
WRITTEN = {"ltr": "from left to right", "rtl": "from right to left"}
PLACE = re.compile(r"\{(\w*)\}")
MARKS: Mapping[str, str] = {"pay.point": ".,\u066b", "pay.group": ",.'\u2019\u066c \u00a0\u202f"}
"""What may stand in an amount of money, before its cents and between its thousands."""


def sentences_of(language: str, forms: Sequence[str]) -> dict[str, str]:
    """All that a language file has, by path: the sentences of a language that we have, in so many forms."""
    from stimuli.datasets.practice import SENTENCES

    practice = {
        f"practice.{side}.{number}": text
        for side, texts in SENTENCES[language].items()
        for number, text in enumerate(texts, 1)
    }
    server, browser = sentences_in(table_of(language)), sentences_in(page_table_of(language), f"{COMMON}.")
    ours = {**dict(browser), **dict(server), **practice}
    whole: dict[str, str] = {}
    for path, text in ours.items():
        if path.startswith("promises.") or path == f"{COMMON}.direction":
            continue
        stem, _, form = path.rpartition(".")
        if not _is_counted(stem):
            whole[path] = text
        elif form == "other":
            # English has two forms, and the one of many holds all places in braces.
            whole |= {f"{stem}.{name}": ours.get(f"{stem}.{name}", text) for name in forms}
    return whole


def _is_counted(stem: str) -> bool:
    part, _, rest = stem.partition(".")
    return part == "page" and rest.partition(".")[2] in COUNTED


def template(tag: str) -> str:
    """The file to be filled in for a language; filled with our sentences if we have it, for others to change.

    Raises ValueError if it is no tag of a language.
    """
    if not re.fullmatch(TAG, tag):
        raise ValueError(f"{tag!r} is no tag of a language: give one such as uk, zh-Hant or ar-EG.")
    language, forms = tag.partition("-")[0], forms_of(tag)
    ours = sentences_of(language, forms) if language in LANGUAGES else {}
    lines = [HEAD.format(file=f"{tag}.toml", forms=", ".join(forms), direction=WRITTEN[direction_of(tag)],
                         language=json.dumps(tag))]  # fmt: skip
    part = ""
    for path, english in sorted(sentences_of("en", forms).items(), key=lambda row: _order(row[0])):
        inner, key = _split(path)
        if inner != part:
            part = inner
            lines += ["", f"# {PARTS.get(part, VOICE)}", f"[{part}]"]
        lines += [f"# {line}".rstrip() for line in english.strip().splitlines()]
        lines.append(f"{key} = {_written(ours.get(path, ''))}")
    return "\n".join(lines) + "\n"


def _split(path: str) -> tuple[str, str]:
    """The table and the key within it: page and paradigms have one by name."""
    parts = path.split(".")
    depth = 2 if parts[0] in ("page", "paradigms") else 1
    return ".".join(parts[:depth]), ".".join(parts[depth:])


def _order(path: str) -> tuple[int, str]:
    """Tables of all studies first; the order within a table stays."""
    part, _ = _split(path)
    return (list(PARTS).index(part), "") if part in PARTS else (len(PARTS), part)


def _written(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    return f'"""\n{quoted[1:-1]}"""'.replace("\\n", "\n") if "\n" in text else quoted


def read_language(text: str, name: str) -> tuple[dict[str, Any], list[Problem]]:
    """The InterfaceTable that a language file says, as plain values, and all that is wrong with the file."""
    try:
        file = tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as error:
        return {}, [Problem(KEY, repr(name), f"is not TOML: {error}", "Mend that line.")]
    tag, translator = file.pop("language", None), file.pop("translator", None)
    problems = []
    if not (isinstance(tag, str) and re.fullmatch(TAG, tag)):
        limit = f"has language = {tag!r}, which is no tag of a language"
        problems.append(Problem(KEY, repr(name), limit, 'Give one such as "uk", "zh-Hant" or "ar-EG".'))
        return {}, problems
    if not (isinstance(translator, str) and translator.strip()):
        remedy = "Say in translator who wrote its sentences: people, or a program and who read them again."
        problems.append(Problem(KEY, repr(name), "names no translator", remedy))
    words = dict(sentences_in(file))
    problems += [Problem(KEY, repr(name), limit, remedy) for limit, remedy in _faults(words, tag)]
    table = {"language": tag, "translator": translator, "words": words}
    return (table, []) if not problems else ({}, problems)


def _faults(words: Mapping[str, Any], tag: str) -> Iterator[tuple[str, str]]:
    """What is wrong with sentences, a kind at a time, and the remedy."""
    wanted = sentences_of("en", forms_of(tag))
    # A space is a mark as well.
    missing = [path for path in wanted if not _is_said(path, words.get(path, ""))]
    if missing:
        remedy = f"Write them; `legible words --template {tag}` has all, with the English sentences."
        yield f"lacks {_count(missing, f'of {len(wanted)} sentences')}", remedy
    unknown = [path for path in words if path not in wanted]
    if unknown:
        forms = ", ".join(forms_of(tag))
        yield (
            f"has {_count(unknown, 'that no page says')}",
            f"Remove them, or mend their spelling; the forms of a count in {tag!r} are {forms}.",
        )
    wrong = [path for path, text in words.items() if path in wanted and not isinstance(text, str)]
    if wrong:
        yield f"has {_count(wrong, 'that are no text')}", "Write each as one text in quotation marks."
    if marks := [
        path
        for path in MARKS
        if path not in {*missing, *wrong} and (words[path] not in MARKS[path] or len(words[path]) != 1)
    ]:
        allowed = "; ".join(f"{path}: {' '.join(map(_shown, MARKS[path]))}" for path in marks)
        yield f"has {_count(marks, 'that are no mark of an amount')}", f"Write one of them ({allowed})."
    elif words.get("pay.point") == words.get("pay.group") is not None:
        yield "has the same mark as pay.point and pay.group", "Write two that differ, as in 1,234.50."
    said = {path: text for path, text in words.items() if path in wanted and path not in {*missing, *wrong}}
    # In the form of one, English need not say the count.
    full = sentences_of("en", ("other",))
    filled = {path: _places_of(full.get(path) or full[f"{path.rpartition('.')[0]}.other"]) for path in said}
    differ = [
        f"{path} ({', '.join(f'{{{place}}}' for place in sorted(filled[path])) or 'none'})"
        for path, text in said.items()
        if _places_of(text) != filled[path] or set("{}") & set(PLACE.sub("", text))
    ]
    if differ:
        yield (
            f"has {_count(differ, 'whose places in braces are not those to be filled')}",
            "Write those that stand here behind each, as they are, and no other braces.",
        )


def _is_said(path: str, text: object) -> bool:
    return bool(str(text) if path in MARKS else str(text).strip())


def _shown(mark: str) -> str:
    return f"U+{ord(mark):04X}" if mark.isspace() or not mark.isascii() else mark


def _places_of(text: str) -> set[str]:
    return set(PLACE.findall(text))


def _count(places: Sequence[str], what: str) -> str:
    more = ", …" if len(places) > NAMED else ""
    return f"{len(places)} {what}: {', '.join(places[:NAMED])}{more}"
