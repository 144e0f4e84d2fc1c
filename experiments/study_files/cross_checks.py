"""Checks of a study file across its tables: what no table knows alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from experiments.definition.colour_vision_verdict import GATE
from experiments.definition.preregistration_table import ALPHA
from experiments.definition.study import ConditionTable, StudyDefinition
from experiments.errors import Problem
from experiments.paradigms import PARADIGMS, get_paradigm
from experiments.paradigms.base import Paradigm, Role
from experiments.paradigms.screening import BadRules, read_rules
from experiments.study_files.validation_problems import problems_of
from experiments.wording.smallest_window import PHONE, windows_of
from stimuli.errors import StimulusError
from stimuli.spec import Component


def raw_checks(raw: Mapping[str, Any], paradigm: Paradigm | None) -> Iterator[Problem]:
    """Checks of the tables as they are written, so that a mistake elsewhere hides none here."""
    conditions = raw.get("conditions", [])
    rows = [c for c in conditions if isinstance(c, dict)] if isinstance(conditions, list) else []
    yield from _condition_checks(rows)
    yield from _named_checks(raw)
    yield from _screening_checks(raw)
    if paradigm is not None:
        yield from _role_checks(rows, paradigm)
        try:
            paradigm.Design.model_validate(raw.get("design", {}))
        except ValidationError as error:
            yield from problems_of(error, paradigm.Design, raw.get("design", {}), "design")


def cross_checks(definition: StudyDefinition | None, paradigm: Paradigm | None) -> Iterator[Problem]:
    """Checks across tables."""
    if definition is None:
        return
    yield from _definition_checks(definition)
    yield from _source_checks(definition)
    yield from _explained_checks(definition)
    if paradigm is not None and _is_designed(definition, paradigm):
        yield from _answer_checks(definition, paradigm)
        yield from _text_checks(definition, paradigm)
        yield from _bonus_checks(definition, paradigm)
        yield from _recipe_checks(definition, paradigm)
        yield from _phone_checks(definition)
        yield from _plates_checks(definition, paradigm)
        yield from _declared_checks(definition, paradigm)
        yield from _extension_checks(definition, paradigm)
        yield from paradigm.check_definition(definition)


def _is_designed(definition: StudyDefinition, paradigm: Paradigm) -> bool:
    try:
        return bool(paradigm.Design.model_validate(definition.design))
    except ValidationError:
        return False


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


def _named_checks(raw: Mapping[str, Any]) -> Iterator[Problem]:
    """Names and parameters of datasets and predictors."""
    from stimuli.datasets import check_dataset
    from stimuli.predictors import check_predictor

    table = raw.get("stimuli")
    table = table if isinstance(table, dict) else {}
    for field, check in (("dataset", check_dataset), ("predictor", check_predictor)):
        several = table.get(f"{field}s", {})
        named = {field: table.get(field)} | (
            {f"{field}s.{name}": row for name, row in several.items()} if isinstance(several, dict) else {}
        )
        for place, row in named.items():
            if not isinstance(row, dict) or not isinstance(row.get("name"), str):
                continue
            try:
                check(Component.from_json(row))
            except StimulusError as error:
                yield Problem(f"stimuli.{place}", repr(row["name"]), str(error), "Mend it.")


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
    times_named = Counter(name for answer in definition.answers for name in answer.classes)
    for name in sorted(n for n, times in times_named.items() if times > 1):
        yield Problem("answers.classes", repr(name), "belongs to two answers", "Leave it with one.")
    named = [(answer.value, answer.classes) for answer in definition.answers]
    if named and stimuli.target is not None and sorted(named) != [("other", ()), ("target", ())]:
        limit = 'are, with target, two: the values "target" and "other", each with a text and without classes'
        yield Problem("answers", ", ".join(values), limit, "Name these, or remove target.")


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
    if (plates.axis, plates.severity) == (type(plates)().axis, type(plates)().severity):
        return  # These can be drawn, and the proof would import scipy's optimiser.
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
            "must be 2 or more, since the rule screening.instructed_share_min reads these checks",
            "Set instructed = 2, or remove the rule.",
        )
    if not definition.quiz and "quiz_attempts_max" in definition.screening:
        yield Problem(
            "screening.quiz_attempts_max", "", "needs a quiz", "Write texts.quiz, or remove the rule."
        )
