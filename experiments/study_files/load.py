"""study.toml -> StudyDefinition: located, read and checked as a whole; every mistake is reported at once."""

from __future__ import annotations

import difflib
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError, create_model

from experiments.definition.colour_vision_verdict import GATE
from experiments.definition.preregistration_table import ALPHA
from experiments.definition.study import ConditionTable, StudyDefinition
from experiments.definition.text_tables import InterfaceFiles, TextFiles
from experiments.errors import InvalidStudy, Problem, StudyError
from experiments.paradigms import PARADIGMS, get_paradigm
from experiments.paradigms.base import Paradigm, Role
from experiments.paradigms.screening import BadRules, read_rules
from experiments.study_files.extension import extend_tables, parent_path, read_parent
from experiments.wording.language_file import read_language
from experiments.wording.smallest_window import PHONE, windows_of
from stimuli.errors import StimulusError, UnknownName
from stimuli.registry import closest, parts_of
from stimuli.spec import Component

KEYS_MAX = 12
"""Up to here, the keys of a table are listed for one that is like none of them."""
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
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidStudy(
            source, [Problem("file", "", f"cannot be read: {error}", "Save it as UTF-8 text.")]
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidStudy(
            source, [Problem("file", "", f"is not TOML: {error}", "Mend that line.")]
        ) from error
    raw.update(changes or {})
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
    except ValidationError as error:
        # A tuple whose parts are wrong counts as too short as well; the parts' own mistakes say more.
        details = [detail for detail in error.errors() if not _is_echo(detail, raw)]
        problems.extend(_problem_of(detail, StudyDefinition) for detail in details)
    problems.extend(_cross_checks(raw, definition, paradigm))
    if problems or definition is None:
        raise InvalidStudy(source, problems)
    return definition


def _with_texts(
    raw: dict[str, Any], folder: Path, problems: list[Problem], further: Sequence[str]
) -> dict[str, Any]:
    """Replaces the names of text files by their contents; `further` are those of the paradigm."""
    fields: dict[str, Any] = dict.fromkeys(further, (str | None, None))
    table = create_model("TextFiles", __base__=TextFiles, **fields)
    try:
        files = table.model_validate(raw.get("texts", {}))
    except ValidationError as error:
        problems.extend(_problem_of(detail, table, "texts") for detail in error.errors())
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
        problems.extend(_problem_of(detail, InterfaceFiles, "interface") for detail in error.errors())
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


def _is_echo(detail: Any, raw: Mapping[str, Any]) -> bool:
    return detail["type"] == "too_short" and detail["loc"] == ("conditions",) and bool(raw.get("conditions"))


def _problem_of(detail: Any, table: type[BaseModel], prefix: str = "") -> Problem:
    """pydantic's error about a value of `table`, which is called `prefix`, as a problem with limit and
    remedy."""
    key = ".".join([*([prefix] if prefix else []), *(str(part) for part in detail["loc"])]) or "study"
    kind, message = detail["type"], str(detail["msg"]).removeprefix("Value error, ")
    if kind == "missing":
        return Problem(key, "", "is missing", "Add it.")
    if kind == "extra_forbidden":
        hint = _near(str(detail["loc"][-1]), _table_at(table, detail["loc"][:-1]))
        limit = f"is not a key of this table{hint}"
        return Problem(key, repr(detail["input"])[:60], limit, "Remove it, or mend its spelling.")
    return Problem(key, repr(detail["input"])[:60], message[:1].lower() + message[1:], "Change the value.")


def _table_at(table: type[BaseModel], path: Sequence[object]) -> type[BaseModel]:
    """The innermost table that a path leads through; names and numbers of rows lead to no other."""
    for part in path:
        declared = table.model_fields.get(str(part))
        inner = parts_of(declared.annotation) if declared is not None else ()
        table = next((t for t in inner if isinstance(t, type) and issubclass(t, BaseModel)), table)
    return table


def _near(key: str, table: type[BaseModel]) -> str:
    """The key of the table that was meant, or what keys there are; "" if they are many and none is near."""
    known = list(table.model_fields)
    few = f"; its keys are {', '.join(known)}" if known and len(known) <= KEYS_MAX else ""
    return closest(key, known) or few


def _paradigm_of(raw: Mapping[str, Any], problems: list[Problem]) -> Paradigm | None:
    name = raw.get("paradigm")
    try:
        return get_paradigm(str(name))
    except UnknownName as error:
        problems.append(Problem("paradigm", repr(name), str(error), f"Choose one of {', '.join(PARADIGMS)}."))
        return None


def _cross_checks(
    raw: Mapping[str, Any], definition: StudyDefinition | None, paradigm: Paradigm | None
) -> Iterator[Problem]:
    """Checks across tables. Works on the raw text too, so that one mistake does not hide another."""
    conditions = raw.get("conditions", [])
    rows = [c for c in conditions if isinstance(c, dict)] if isinstance(conditions, list) else []
    yield from _condition_checks(rows)
    yield from _screening_checks(raw)
    is_designed = False
    if paradigm is not None:
        yield from _role_checks(rows, paradigm)
        try:
            paradigm.Design.model_validate(raw.get("design", {}))
            is_designed = True
        except ValidationError as error:
            for detail in error.errors():
                yield _problem_of(detail, paradigm.Design, "design")
    if definition is not None:
        yield from _definition_checks(definition)
        yield from _source_checks(definition)
        yield from _explained_checks(definition)
    if definition is not None and paradigm is not None and is_designed:
        yield from _answer_checks(definition, paradigm)
        yield from _text_checks(definition, paradigm)
        yield from _bonus_checks(definition, paradigm)
        yield from _recipe_checks(definition, paradigm)
        yield from _phone_checks(definition)
        yield from _plates_checks(definition, paradigm)
        yield from _declared_checks(definition, paradigm)
        yield from _extension_checks(definition, paradigm)
        yield from paradigm.check_definition(definition)


def _condition_checks(conditions: Sequence[dict[str, Any]]) -> Iterator[Problem]:
    from stimuli.explainers import check_explainer

    names = [str(c.get("name")) for c in conditions]
    for name in sorted({n for n in names if names.count(n) > 1}):
        yield Problem("conditions.name", repr(name), "names two conditions", "Give each its own name.")
    for index, condition in enumerate(conditions):
        explainer = condition.get("explainer")
        if isinstance(explainer, dict) and "name" in explainer:
            try:
                check_explainer(Component.from_json(explainer))
            except StimulusError as error:
                yield Problem(
                    f"conditions.{index}.explainer", repr(explainer.get("name")), str(error), "Mend it."
                )


def _role_checks(conditions: Sequence[dict[str, Any]], paradigm: Paradigm) -> Iterator[Problem]:
    """The parts that conditions may play in this paradigm, how many play each, and which are explained."""
    for index, condition in enumerate(conditions):
        name = condition.get("role")
        role = paradigm.roles.get(name) if isinstance(name, str) else None
        if role is None:
            known = ", ".join(paradigm.roles)
            yield Problem(f"conditions.{index}.role", repr(name), f"must be one of {known}", "Choose one.")
        elif role.explained is not None and role.explained != ("explainer" in condition):
            yield Problem(f"conditions.{index}", "", *_explainer_problem(str(name), role.explained))
    counts = Counter(str(c.get("role")) for c in conditions)
    for name, role in paradigm.roles.items():
        if counts[name] < role.at_least or (role.at_most is not None and counts[name] > role.at_most):
            written = f"{counts[name]} of role {name!r}"
            yield Problem("conditions.role", written, _count_text(role), f'Give so many role = "{name}".')


def _explainer_problem(role: str, is_explained: bool) -> tuple[str, str]:
    if is_explained:
        return f"role {role!r} needs an explainer", "Add explainer = { name = … }."
    return f"role {role!r} has no explainer", "Remove the explainer, or choose another role."


def _count_text(role: Role) -> str:
    if role.at_least == role.at_most:
        return f"exactly {role.at_least} is needed"
    return f"{role.at_least} to {'any number' if role.at_most is None else role.at_most} are needed"


def _answer_checks(definition: StudyDefinition, paradigm: Paradigm) -> Iterator[Problem]:
    fewest, most = paradigm.answers_count
    count, stimuli = len(definition.choices), definition.stimuli
    if not fewest <= count <= most and most:
        yield Problem(
            "stimuli",
            f"{count} answers",
            f"{paradigm.name} asks people to choose among {fewest}{f' to {most}' if most > fewest else ''}",
            'Give either classes = ["a", "b"] or target = "a", or [[answers]].',
        )
    values = [answer.value for answer in definition.answers]
    for value in sorted({v for v in values if values.count(v) > 1}):
        yield Problem("answers.value", repr(value), "stands for two answers", "Give each its own value.")
    named = Counter(name for answer in definition.answers for name in answer.classes)
    for name in sorted(n for n, times in named.items() if times > 1):
        yield Problem("answers.classes", repr(name), "belongs to two answers", "Leave it with one.")
    if definition.answers and stimuli.target is not None:
        yield Problem("answers", "", "goes with classes, not with target", "Remove target, or [[answers]].")


def _text_checks(definition: StudyDefinition, paradigm: Paradigm) -> Iterator[Problem]:
    """Each text of the paradigm's own is there if people of the study read it, and only then."""
    read = set(paradigm.arm_texts(definition).values())
    for name in paradigm.texts:
        if (name in read) != bool(definition.texts.get(name)):
            limit = "is read by people of this study" if name in read else "is read by nobody in this study"
            yield Problem(f"texts.{name}", "", limit, "Write the text." if name in read else "Remove it.")


def _source_checks(definition: StudyDefinition) -> Iterator[Problem]:
    """Every condition names a dataset and a predictor if the study has several."""
    for field in ("dataset", "predictor"):
        known = getattr(definition.stimuli, f"{field}s")
        for index, condition in enumerate(definition.conditions):
            name = getattr(condition, field)
            if known and name not in known:
                limit = f"must be one of {', '.join(known)}"
                yield Problem(f"conditions.{index}.{field}", repr(name), limit, "Choose one.")
            elif name and not known:
                limit = f"names one of several, but the study has one {field}"
                yield Problem(f"conditions.{index}.{field}", repr(name), limit, "Remove it.")


def _explained_checks(definition: StudyDefinition) -> Iterator[Problem]:
    """All conditions explain the same class of the model, but controls."""
    for index, condition in enumerate(definition.conditions):
        if condition.explained is None:
            continue
        if condition.role != "control" or condition.explainer is None:
            yield Problem(
                f"conditions.{index}.explained",
                repr(condition.explained.of),
                "only a control with an explainer may explain another class than the study",
                "Remove it, or set [explained] for all conditions.",
            )


def _bonus_checks(definition: StudyDefinition, paradigm: Paradigm) -> Iterator[Problem]:
    if definition.reward.bonus_per_match_cents and not paradigm.scores(
        paradigm.Design.model_validate(definition.design)
    ):
        yield Problem(
            "reward.bonus_per_match_cents",
            str(definition.reward.bonus_per_match_cents),
            f"nothing is right or wrong in this {paradigm.name} study, so no answer can earn a bonus",
            "Set it and bonus_max_cents to 0.",
        )


def _recipe_checks(definition: StudyDefinition, paradigm: Paradigm) -> Iterator[Problem]:
    """What the recipe cannot show, or not so on the paradigm's pages."""
    render = definition.render
    if render.sign == "diverging" and render.unsigned == "refuse":
        unsigned = [c.name for c in definition.conditions if _has_sign(c) is False]
        if unsigned:
            yield Problem(
                "render.sign",
                "'diverging'",
                f"shows evidence for and against, but the methods of {', '.join(unsigned)} have no sign",
                'Set [render] unsigned = "for", which draws their strength on the side of the answer, or '
                'sign = "positive".',
            )
    display = getattr(paradigm.Design.model_validate(definition.design), "display", "beside")
    if render.base == "grey" and display == "overlay":
        yield Problem(
            "render.base",
            "'grey'",
            'takes the colours from the only picture that people see, for [design] display is "overlay"',
            'Set display = "beside", which shows the original too, or base = "colour".',
        )


def _phone_checks(definition: StudyDefinition) -> Iterator[Problem]:
    """A study lets phones in only if a whole trial fits one."""
    windows = windows_of(definition)
    if definition.device.phones and not any(window.holds(*PHONE) for window in windows):
        needed, (width_px, height_px) = windows[-1], PHONE
        yield Problem(
            "device.phones",
            "true",
            f"needs trials that fit a phone of {width_px} x {height_px} px, and these need "
            f"{needed.width_px} x {needed.height_px} px",
            "Make [design] picture_px smaller, shorten the answers, leave out the reservoir or a stated "
            "min_width_px or min_height_px, or remove phones.",
        )


def _plates_checks(definition: StudyDefinition, paradigm: Paradigm) -> Iterator[Problem]:
    from stimuli.datasets.plates.colours import screening_pair
    from stimuli.datasets.plates.screening import JITTER

    plates = definition.plates
    if plates is None:
        return
    if GATE not in paradigm.gates:
        asking = ", ".join(name for name in PARADIGMS if GATE in get_paradigm(name).gates)
        limit = f"is a colour check, and {paradigm.name} has none (only {asking})"
        yield Problem("plates", "", limit, "Remove the table.")
    try:
        screening_pair(plates.axis, plates.severity, JITTER)
    except StimulusError as error:
        yield Problem("plates", "", f"cannot be drawn: {error}", "Change axis or severity.")


def _declared_checks(definition: StudyDefinition, paradigm: Paradigm) -> Iterator[Problem]:
    """What is declared of the analysis must be what the paradigm's report does."""
    declared = definition.preregistration
    if declared is None:
        return
    if unfit := declared.unfit_looks([c.slots for c in definition.conditions]):
        yield Problem("preregistration.looks", str(list(declared.looks)), unfit, "Mend them, or remove them.")
    if paradigm.planned_contrasts:
        return
    if declared.looks:
        limit = (
            f"are at planned contrasts with a baseline, and {paradigm.name} has none that can be looked at"
        )
        yield Problem("preregistration.looks", str(list(declared.looks)), limit, "Remove looks and boundary.")
    if declared.contrasts is not None:
        limit = f"chooses between planned contrasts, and {paradigm.name} has only those of its own"
        yield Problem("preregistration.contrasts", repr(declared.contrasts), limit, "Remove it.")
    if declared.alpha not in (None, ALPHA):
        limit = f"must be {ALPHA:g}, the level at which the report of {paradigm.name} tests"
        yield Problem("preregistration.alpha", f"{declared.alpha:g}", limit, "Remove it.")


def _extension_checks(definition: StudyDefinition, paradigm: Paradigm) -> Iterator[Problem]:
    if definition.extends and not paradigm.is_extensible:
        able = ", ".join(name for name in PARADIGMS if get_paradigm(name).is_extensible)
        limit = f"is a study of {paradigm.name}, whose people meet several conditions or each other's work"
        yield Problem("extends", repr(definition.extends), limit, f"Extend a study of {able}.")
    if definition.extension != type(definition.extension)() and not definition.extends:
        yield Problem("extension", "", "goes with extends, which is not given", "Remove it, or add extends.")


def _has_sign(condition: ConditionTable) -> bool | None:
    """None for a condition without maps, and if it is not known; that it cannot be read is told elsewhere."""
    from stimuli.explainers import has_sign

    try:
        return has_sign(condition.explainer.component()) if condition.explainer else None
    except StimulusError:
        return None


def _screening_checks(raw: Mapping[str, Any]) -> Iterator[Problem]:
    screening = raw.get("screening", {})
    if not isinstance(screening, dict):
        return
    try:
        read_rules(screening)
    except BadRules as error:
        for name, sentence in error.problems.items():
            yield Problem(f"screening.{name}", repr(screening.get(name)), sentence, "Mend the rule.")


def _metric_checks(definition: StudyDefinition) -> Iterator[Problem]:
    from stimuli.metrics import check_metric

    for index, metric in enumerate(definition.metrics):
        try:
            check_metric(metric.component())
        except StimulusError as error:
            yield Problem(f"metrics.{index}", repr(metric.name), str(error), "Mend it.")


def _definition_checks(definition: StudyDefinition) -> Iterator[Problem]:
    yield from _metric_checks(definition)
    ids = [q.id for q in definition.questions]
    for name in sorted({n for n in ids if ids.count(n) > 1}):
        yield Problem("questions.id", repr(name), "names two questions", "Give each its own id.")
    if definition.ethics.deception and "debrief" not in definition.texts:
        yield Problem("ethics.deception", "", "demands a debrief that discloses it", "Write texts.debrief.")
    if definition.screening.get("instructed_share_min") and definition.checks.instructed < 2:
        yield Problem(
            "checks.instructed",
            str(definition.checks.instructed),
            "at least 2 where a rule reads them",
            "Add.",
        )
    if not definition.quiz and "quiz_attempts_max" in definition.screening:
        yield Problem(
            "screening.quiz_attempts_max", "", "needs a quiz", "Write texts.quiz, or remove the rule."
        )
