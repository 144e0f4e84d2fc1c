"""study.toml -> StudyDefinition: located, read and checked as a whole; every mistake is reported at once."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError, create_model

from experiments.definition.study import StudyDefinition
from experiments.definition.text_tables import InterfaceFiles, TextFiles
from experiments.errors import InvalidStudy, Problem, StudyError
from experiments.paradigms import PARADIGMS, get_paradigm
from experiments.paradigms.base import Paradigm
from experiments.study_files.cross_checks import cross_checks, raw_checks
from experiments.study_files.extension import extend_tables, parent_path, read_parent
from experiments.study_files.toml_lines import NO_KEY, KeyPath, TomlText, read_toml
from experiments.study_files.validation_problems import likely_definition, problems_of
from experiments.wording.language_file import read_language
from stimuli.errors import UnknownName

STUDIES_DIR = Path(__file__).parents[1] / "studies"


def find_study(name: str, extra_dirs: tuple[Path, ...] = ()) -> Path:
    """The study.toml of a slug or a path. Shipped examples are found by slug."""
    path = Path(name)
    if path.suffix == ".toml" or path.is_dir():
        path = path / "study.toml" if path.is_dir() else path
        if not path.is_file():
            raise StudyError(f"{path}: there is no such file. Give the path of a study.toml, or a slug.")
        return path
    known: dict[str, Path] = {}
    for folder in (*extra_dirs, STUDIES_DIR):
        for path in sorted(folder.glob("*/study.toml")):
            known.setdefault(path.parent.name, path)
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise StudyError(f"{name!r} is neither a file nor a known study ({', '.join(sorted(known))}).{hint}")


def material_folder(path: Path) -> Path:
    """The folder that a study's relative paths start from: an extension's is its parent's. Raises StudyError
    if that is not there."""
    return (parent_path(path, read_parent(path), STUDIES_DIR) or path).parent


def load_study(path: Path, *, changes: Mapping[str, Any] | None = None) -> StudyDefinition:
    """Reads and validates a study.toml whole; raises InvalidStudy with every mistake at once.

    `changes` replaces top-level keys of the file before validation (the demo adapts the number of slots).
    """
    source = str(path)
    try:
        text = read_toml(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidStudy(
            source, [Problem(NO_KEY, "", f"cannot be read: {error}", "Save it as UTF-8 text.")]
        ) from error
    raw: dict[str, Any] = {**text.tables, **(changes or {})}
    if any(problem.key == NO_KEY for problem in text.problems):
        raise InvalidStudy(source, text.problems)
    problems: list[Problem] = []
    parent = parent_path(path, raw, STUDIES_DIR)
    if parent is not None:
        raw = extend_tables(raw, read_parent(parent), problems)
    paradigm = _paradigm_of(raw, problems)
    if paradigm is not None and isinstance(raw.get("checks", {}), dict):
        raw["checks"] = {**paradigm.checks, **raw.get("checks", {})}
    if paradigm is not None and paradigm.render:
        raw.setdefault("render", dict(paradigm.render))
    raw = _with_texts(raw, (parent or path).parent, problems, paradigm.texts if paradigm is not None else ())
    if "interface" in raw:
        raw = _with_interface(raw, (parent or path).parent, problems)
    definition = None
    try:
        definition = StudyDefinition.model_validate(raw)
        problems.extend([*raw_checks(raw, paradigm), *cross_checks(definition, paradigm)])
    except ValidationError as error:
        problems.extend([*problems_of(error, StudyDefinition, raw), *raw_checks(raw, paradigm)])
        # One mistake hides no other: the rest of the file is checked as if it were not there.
        likely, replaced = likely_definition(raw)
        guessed = TomlText(unread=replaced)
        checks = cross_checks(likely, paradigm)
        problems.extend(fault for fault in checks if not guessed.is_unread(_path_of(fault)))
    if problems or text.problems or definition is None:
        rows = text.tables.get("conditions", ())
        shift = len(raw["conditions"]) - len(rows) if parent is not None and isinstance(rows, list) else 0
        raise InvalidStudy(source, _in_order(problems, text, shift))
    return definition


def _in_order(problems: Sequence[Problem], text: TomlText, bridge: int) -> list[Problem]:
    """The problems by their lines, without those that follow from lines which could not be read. `bridge`: so
    many conditions stand before those of the file."""
    placed = list(text.problems)
    for problem in problems:
        path = _path_of(problem)
        if text.is_unread(path):
            continue
        if path[:1] == ("conditions",) and len(path) > 1 and isinstance(path[1], int):
            path = ("conditions", path[1] - bridge, *path[2:])
        line = text.line_of(path)
        placed.append(problem if line is None else replace(problem, place=f"line {line}"))
    return sorted(placed, key=lambda problem: int(problem.place.rpartition(" ")[2] or 0))


def _path_of(problem: Problem) -> KeyPath:
    return tuple(int(part) if part.isdigit() else part for part in problem.key.split("."))


def _with_texts(
    raw: dict[str, Any], folder: Path, problems: list[Problem], further: Sequence[str]
) -> dict[str, Any]:
    """Replaces the names of text files by their contents; `further` are those of the paradigm."""
    fields: dict[str, Any] = dict.fromkeys(further, (str | None, None))
    table = create_model("TextFiles", __base__=TextFiles, **fields)
    try:
        files = table.model_validate(raw.get("texts", {}))
    except ValidationError as error:
        problems.extend(problems_of(error, table, raw.get("texts", {}), "texts"))
        return {**raw, "texts": {}}
    contents = {}
    for key, name in files.model_dump(exclude_none=True).items():
        if (text := _text_beside(folder, f"texts.{key}", name, problems)) is not None:
            contents[key] = text
    quiz_text = contents.pop("quiz", None)
    result = {**raw, "texts": contents}
    if quiz_text is not None:
        try:
            result["quiz"] = tomllib.loads(quiz_text).get("questions", [])
        except tomllib.TOMLDecodeError as error:
            problems.append(
                Problem("texts.quiz", repr(files.quiz), f"is not TOML: {error}", "Mend that line.")
            )
    return result


def _with_interface(raw: dict[str, Any], folder: Path, problems: list[Problem]) -> dict[str, Any]:
    """Replaces the name of the language file by what it says; without it if that is not whole."""
    rest = {key: value for key, value in raw.items() if key != "interface"}
    try:
        name = InterfaceFiles.model_validate(raw["interface"]).words
    except ValidationError as error:
        problems.extend(problems_of(error, InterfaceFiles, raw["interface"], "interface"))
        return rest
    if "language" in raw:
        limit = f"is what {name} says itself"
        problems.append(Problem("language", repr(raw["language"]), limit, "Remove it, or [interface]."))
    if (text := _text_beside(folder, "interface.words", name, problems)) is None:
        return rest
    table, faults = read_language(text, name)
    problems.extend(faults)
    return rest if faults else {**rest, "interface": table}


def _text_beside(folder: Path, key: str, name: str, problems: list[Problem]) -> str | None:
    """The content of a text file of the study; None, with a problem, if it cannot be had."""
    path = (folder / name).resolve()
    if folder.resolve() not in path.parents:
        problems.append(Problem(key, repr(name), "must lie beside study.toml", "Move the file there."))
        return None
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problems.append(Problem(key, repr(name), f"cannot be read: {error}", "Write the file, as UTF-8."))
        return None


def _paradigm_of(raw: Mapping[str, Any], problems: list[Problem]) -> Paradigm | None:
    name = raw.get("paradigm")
    try:
        return get_paradigm(str(name))
    except UnknownName as error:
        problems.append(Problem("paradigm", repr(name), str(error), f"Choose one of {', '.join(PARADIGMS)}."))
        return None
