"""Stages: a study whose solutions are frozen, and a later study of the protocol that starts from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from django.db import transaction
from django.utils import timezone

from experiments.definition.study import StudyDefinition
from experiments.design.rng import Streams
from experiments.errors import StudyError
from experiments.models import Item, Solution, Study
from experiments.paradigms import design_of
from experiments.paradigms.base import PlanError, PlanSolution, SolvedUse
from experiments.paradigms.solution_numbers import (
    SourceNumbers,
    left_out,
    numbers_of,
    overlaps,
    told_by_form,
)
from experiments.paradigms.solutions import (
    FrozenSolution,
    Settings,
    SourceAnswer,
    freeze_given,
    solutions_of_given,
)
from experiments.selectors import definition_of
from experiments.stages.solution_sources import (
    answers_not_kept,
    given_by_models,
    given_by_people,
    items_of,
    sources_of,
)
from stimuli.spec import content_key
from stimuli.types import silent

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stimuli.types import Progress

LABELS = "labels"
"""In the place of an earlier study: solutions are the labels of the items, and what the models predict."""


@dataclass(frozen=True, slots=True)
class SettingsPreview:
    """What some settings would make of the tuning tasks: numbers per source, and the mean overlap of its
    regions with those that other people marked for the same answer."""

    settings: Settings
    numbers: tuple[SourceNumbers, ...]
    overlaps: Mapping[str, float | None]


def source_of(definition: StudyDefinition) -> str:
    """Slug of the study whose solutions this one starts from; empty if it starts from none or from labels."""
    named = str(getattr(design_of(definition), "solutions_from", ""))
    return "" if named == LABELS else named


def freeze(study: Study, settings: Settings | None = None, progress: Progress = silent) -> str:
    """Turns the kept answers of a closed study, and what its models say and mark, into solutions; returns
    their digest. All are stored, or none. Repeating it changes nothing.

    Raises StudyError for a study that still collects, for a source without solutions, for settings other than
    those that it was frozen under, and for all that `freeze_given` refuses.
    """
    if study.frozen_digest:
        _refuse_others(study, settings)
        return study.frozen_digest
    if study.state != Study.State.CLOSED:
        raise StudyError(f"{study.slug!r} is {study.state}. Close it before its solutions are frozen.")
    settings = settings or Settings()
    given, side = _source_answers(study, progress), _side_of(study)
    try:
        solutions = freeze_given(given, items_of(study), settings, study.slug, Streams(study.seed))
    except PlanError as error:
        raise StudyError(f"{study.slug!r} cannot be frozen: {error}.") from error
    kept = {"settings": settings.as_json(), **_summary(study, solutions, given, side)}
    rows = _rows(study, solutions)
    digest = content_key(
        [
            kept["settings"],
            side,
            [[r.key, r.item.key, r.source, r.choice, r.region, r.use, r.donor, r.made] for r in rows],
        ]
    )
    with transaction.atomic():
        waiting = Study.objects.filter(id=study.pk, frozen_digest="")
        if waiting.update(frozen_digest=digest, frozen_at=timezone.now(), frozen=kept) == 1:
            Solution.objects.bulk_create(rows, batch_size=500)
    study.refresh_from_db()
    _refuse_others(study, settings)
    return study.frozen_digest


def look(study: Study, tried: Sequence[Settings], progress: Progress = silent) -> tuple[SettingsPreview, ...]:
    """What each of the settings would make of the tuning tasks, which no lead ever meets. Stores nothing.
    Raises StudyError for a study without solved tuning tasks."""
    tuning = {item.key for item in items_of(study) if item.use == "tuning"}
    given = [each for each in _source_answers(study, progress) if each.item in tuning]
    people, _ = sources_of(study)
    if not any(each.source in people for each in given):
        raise StudyError(
            f"{study.slug!r} has {len(tuning)} tuning items, and people have solved none of them: settings "
            "are chosen on tuning tasks alone. Mark pictures as tuning, or freeze with the usual settings."
        )
    side = _side_of(study)
    looked = []
    for settings in tried:
        streams = Streams(study.seed)
        known = _with_known_areas(given)
        made = tuple(solutions_of_given(known, settings, study.slug, streams))
        shares = overlaps(made, people[0], side) if side is not None else {}
        looked.append(SettingsPreview(settings, numbers_of(made, known), shares))
    return tuple(looked)


def frozen_source(definition: StudyDefinition) -> Study | None:
    """The study whose frozen solutions this one starts from. Raises StudyError if they are not frozen yet, or
    if their regions lie on another grid than this study names."""
    slug = source_of(definition)
    if not slug:
        return None
    study = Study.objects.filter(slug=slug).first()
    if study is None:
        raise StudyError(
            f"design.solutions_from names {slug!r}, and there is no such study here. Run it first: open it, "
            "close it when its lists are filled, and freeze it."
        )
    if not study.frozen_digest:
        raise StudyError(f"The solutions of {slug!r} are not frozen yet. Run freeze {slug} first.")
    side, asked = study.frozen.get("side"), definition.design.get("grid")
    if asked is not None and side is not None and asked != side:
        raise StudyError(
            f"design.grid is {asked}, and the regions of {slug!r} were marked on {side} x {side} cells. "
            f"Set grid = {side}, or leave it out."
        )
    return study


def solved_in(source: Study) -> tuple[PlanSolution, ...]:
    """Every solution of a stage, in a fixed order."""
    rows = Solution.objects.filter(study=source).order_by("key")
    return tuple(
        PlanSolution(key, item, source, choice, cast("SolvedUse", use))
        for key, item, source, choice, use in rows.values_list("key", "item__key", "source", "choice", "use")
    )


def solutions_of(study: Study, definition: StudyDefinition) -> tuple[PlanSolution, ...]:
    """Every solution that a study starts from, in a fixed order.

    Raises StudyError if the earlier stage was frozen anew since this study was drafted.
    """
    source = frozen_source(definition)
    if source is None:
        is_of_labels = getattr(design_of(definition), "solutions_from", "") == LABELS
        return solved_in(study) if is_of_labels else ()
    if study.solutions_digest != source.frozen_digest:
        raise StudyError(
            f"{study.slug!r} was drafted from other solutions than {source.slug!r} holds now. Build it again."
        )
    return solved_in(source)


def frozen_of(study: Study) -> dict[str, Any]:
    """Under which settings the solutions of a stage were frozen, or those that it starts from, and what was
    measured of them; empty if there are none."""
    slug = study.definition.get("design", {}).get("solutions_from", "")
    source = study if not slug else Study.objects.filter(slug=slug).only("frozen").first()
    return dict(source.frozen) if source is not None else {}


def _source_answers(study: Study, progress: Progress) -> tuple[SourceAnswer, ...]:
    """What people and models gave for the items that people have solved."""
    by_people = given_by_people(study)
    if not by_people:
        raise StudyError(f"{study.slug!r} has no kept answers that could be solutions.")
    solved = sorted({each.item for each in by_people})
    by_models = tuple(given_by_models(study, solved, _side_of(study), progress))
    there = {each.source for each in (*by_people, *by_models)}
    lacking = [c.name for c in study.conditions.all() if c.name not in there]
    if lacking:
        raise StudyError(
            f"{study.slug!r} has no solutions of {', '.join(lacking)}: every condition is a source. Run "
            f"build_stimuli {study.slug}, or have its tasks solved."
        )
    return (*by_people, *by_models)


def _with_known_areas(given: Sequence[SourceAnswer]) -> list[SourceAnswer]:
    """Without the maps of an answer that was painted on none of these items, for they cannot be cut."""
    painted = {each.choice for each in given if each.is_painted}
    return [e if e.is_painted or e.choice in painted else replace(e, mark=None) for e in given]


def _side_of(study: Study) -> int | None:
    """The side of the grid on which regions are marked; None for a stage without regions."""
    side = getattr(design_of(definition_of(study)), "grid", None)
    return None if side is None else int(side)


def _summary(
    study: Study, solutions: Sequence[FrozenSolution], given: Sequence[SourceAnswer], side: int | None
) -> dict[str, Any]:
    people, _ = sources_of(study)
    told = told_by_form(solutions, people[0], side, study.seed) if people and side is not None else {}
    summary: dict[str, Any] = {
        "side": side,
        "sources": [numbers.as_json() for numbers in numbers_of(solutions, given)],
        "left_out": {"not_kept": answers_not_kept(study), "sources": left_out(solutions, items_of(study))},
        "told": {source: asdict(decoded) if decoded else None for source, decoded in told.items()},
    }
    known = {source: decoded for source, decoded in told.items() if decoded}
    if known:
        # The source that is told best, since a lead needs to tell one only.
        source, most = max(known.items(), key=lambda pair: pair[1].auc)
        interval = [most.low, most.high]
        summary["source_auc"] = {"auc": most.auc, "interval": interval, "n": most.pictures, "source": source}
    return summary


def _rows(study: Study, solutions: Sequence[FrozenSolution]) -> list[Solution]:
    items = {item.key: item for item in Item.objects.filter(study=study, copy_of=None).defer("logits")}
    return [solution_row(study, solution, items[solution.item]) for solution in solutions]


def solution_row(study: Study, solution: FrozenSolution, item: Item) -> Solution:
    return Solution(
        study=study,
        key=solution.key,
        item=item,
        source=solution.source,
        choice=solution.choice,
        region=None if solution.region is None else list(solution.region),
        use=solution.use,
        donor=solution.donor,
        made=dict(solution.made),
    )


def _refuse_others(study: Study, settings: Settings | None) -> None:
    frozen = study.frozen.get("settings")
    if settings is not None and frozen is not None and settings.as_json() != frozen:
        raise StudyError(
            f"{study.slug!r} is frozen with {_settings_text(frozen)}, and cannot be frozen with "
            f"{_settings_text(settings.as_json())} as well. Go on with what is frozen."
        )


def _settings_text(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in settings.items())
