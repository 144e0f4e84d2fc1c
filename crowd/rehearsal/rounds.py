"""The rounds of a demo: what its options ask of each study, and each study from its stimuli to its report."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management import call_command

from crowd.rehearsal import demo, shown
from crowd.rehearsal.stages import check_sources, end_stage, print_routing, stages_of
from crowd.rehearsal.usual import (
    ITEMS,
    PARTICIPANTS,
    SCENARIO_PARTICIPANTS,
    UNSEEN,
    USUAL,
    USUAL_ITEMS,
    USUAL_PARTICIPANTS,
)
from experiments.definition import StudyDefinition
from experiments.kinds import get_kind
from experiments.models import Slot, Study
from experiments.paradigms import design_of, get_paradigm
from experiments.paradigms.base import PlanCondition, Pool
from experiments.study_file import find_study, load_study
from experiments.terminal import Terminal
from stimuli.datasets.photographs import cut

if TYPE_CHECKING:
    from analysis.reports.scenarios import Scenario

PHOTOGRAPHS = "grass-or-gravel"


def run(terminal: Terminal, options: dict[str, Any]) -> None:
    """The studies that the options name, one after another, and their server, which is left up."""
    call_command("migrate", verbosity=0)
    every: list[str] | None = options["all_scenarios"]
    if every is None:
        names = [options["study"]]
    else:
        # Imported here and below: it needs statistics, which take seconds to import.
        from crowd.rehearsal.scenarios import SCENARIO_STUDIES, print_scenarios

        names = every or list(SCENARIO_STUDIES)
    # All are looked up and read before any work is done.
    folders = tuple(settings.STUDY_DIRS)
    paths = [find_study(name, folders) for name in names]
    paths = [with_photographs(p, terminal) if p.parent.name == PHOTOGRAPHS else p for p in paths]
    staged = [rounds_of(stages_of(path, folders), options) for path in paths]
    steps = demo.Steps(terminal, sum(len(stages) for stages in staged))
    first = [demo.prepare(stages[0].path, stages[0].changes, terminal, steps) for stages in staged]
    url = f"http://127.0.0.1:{options['port']}"
    with shown.serving(options["port"], url) as server:
        pairs = zip(first, staged, strict=True)
        done = [run_stages(study, stages, url, terminal, options, steps) for study, stages in pairs]
        if every is not None:
            print_scenarios([made for _, made in done if made is not None], terminal)
        *ended, last = done[-1][0]
        shown.print_addresses(last, url, terminal, not options["no_serve"], ended)
        if not options["no_serve"]:
            shown.wait_for_end(server)


def rounds_of(paths: Sequence[Path], options: dict[str, Any]) -> tuple[Round, ...]:
    """Every stage of one study; all but the last are to be filled."""
    is_scenario, participants = options["all_scenarios"] is not None, options["participants"]
    asked = tuple(
        Round.of(path, participants, is_scenario, is_filled=number < len(paths))
        for number, path in enumerate(paths, 1)
    )
    check_sources([each.definition for each in asked])
    return asked


@dataclass(frozen=True, slots=True)
class Round:
    """One study of a demo: its file, how many are to pass (None: as many as it has places), and what is
    changed for that. `is_scenario`: one of several, with metrics and a ceiling."""

    path: Path
    definition: StudyDefinition
    wanted: int | None
    changes: dict[str, Any]
    is_scenario: bool

    @classmethod
    def of(cls, path: Path, participants: int | None, is_scenario: bool, is_filled: bool) -> Round:
        definition = load_study(path)
        if is_filled:
            return cls(path, definition, None, {}, is_scenario)
        usual = SCENARIO_PARTICIPANTS if is_scenario else None
        wanted, changes = scaled(definition, participants or usual)
        if is_scenario:
            from crowd.rehearsal.scenarios import metric_tables

            changes = {**changes, "metrics": metric_tables()}
        return cls(path, definition, wanted, changes, is_scenario)

    def run(
        self,
        study: Study,
        url: str,
        terminal: Terminal,
        options: dict[str, Any],
        steps: demo.Steps,
        first: int,
    ) -> tuple[int, Scenario | None]:
        """From the simulated people to the controls; the number of the next person, and what the table of
        scenarios needs of it, if it is of them."""
        seed, unseen = options["seed"], options["unseen"]
        wanted = self.wanted or Slot.objects.filter(study=study).count()
        steps("Send simulated people: they take part over HTTP, by the API of the browser's page.")
        coming = demo.send_people(study, self.definition, url, wanted, seed, terminal, first=first)
        print_routing(study, terminal)
        steps("Report what they did, as for people.")
        report = demo.print_results(study, terminal)
        told = settings.VAR_DIR / (f"controls-{study.slug}.json" if self.is_scenario else "controls.json")
        if unseen is None:
            unseen = UNSEEN if self.is_scenario else 0
        steps("Compare with controls: the same observers with spoiled and with perfect explanations.")
        controls = demo.print_controls(study, self.path.parent, seed, terminal, told, unseen)
        steps("Look for faults of the explanations; a study is measured before people come.")
        demo.print_faults(study, self.path.parent, terminal)
        if not self.is_scenario:
            return coming, None
        from crowd.rehearsal.scenarios import scenario_of

        return coming, scenario_of(study, report, controls)


def run_stages(
    study: Study,
    stages: Sequence[Round],
    url: str,
    terminal: Terminal,
    options: dict[str, Any],
    steps: demo.Steps,
) -> tuple[list[Study], Scenario | None]:
    """One stage after the other, each from the solutions of the one before and with other people. `study` is
    the first, which is open."""
    studies = [study]
    coming, scenario = stages[0].run(study, url, terminal, options, steps, 0)
    for stage in stages[1:]:
        end_stage(studies[-1], terminal)
        studies.append(demo.prepare(stage.path, stage.changes, terminal, steps))
        coming, scenario = stage.run(studies[-1], url, terminal, options, steps, coming)
    return studies, scenario


def scaled(definition: StudyDefinition, participants: int | None) -> tuple[int, dict[str, Any]]:
    """How many are to pass, and the changed conditions that leave the walk-in places free.

    The number is rounded up to whole conditions; slots are as many as the paradigm needs for so many plans.
    If the file has exactly these slots nothing is changed. If the plans do not follow from slots, the
    paradigm says what makes more of them.
    """
    count = len(definition.conditions)
    paradigm, design = get_paradigm(definition.paradigm), design_of(definition)
    planned = tuple(PlanCondition(c.name, c.role, 0) for c in definition.conditions)
    pool = Pool((), planned, (), definition.stimuli.balance, 0, 0)
    coming = participants or usual_participants(definition, pool)
    wanted = math.ceil(coming / count) * count
    slots = paradigm.pilot_slots(design, pool, wanted + demo.WALK_INS)
    follow = slots > paradigm.pilot_slots(design, pool, 1)
    if not follow:
        more = paradigm.more_places(design)
        return wanted, {"design": {**definition.design, **more}} if more else {}
    if all(condition.slots == slots for condition in definition.conditions):
        return wanted, {}
    fewer = {}
    items = USUAL_ITEMS if definition.slug == USUAL else ITEMS
    if participants is None and definition.stimuli.items > items:
        fewer = {"stimuli": {**definition.stimuli.model_dump(mode="json", exclude_none=True), "items": items}}
    tables = [condition.model_dump(mode="json", exclude_none=True) for condition in definition.conditions]
    return wanted, {"conditions": [{**table, "slots": slots} for table in tables], **fewer}


def usual_participants(definition: StudyDefinition, pool: Pool) -> int:
    """Those of crowd/rehearsal/usual.py; if each trial is handed out alone, which takes many more requests,
    no more than the file has places for, less those for visitors."""
    paradigm, design = get_paradigm(definition.paradigm), design_of(definition)
    if not any(get_kind(kind).is_alone for kind in paradigm.kinds_of(definition)):
        return USUAL_PARTICIPANTS if definition.slug == USUAL else PARTICIPANTS
    slots = min(condition.slots for condition in definition.conditions)
    most = slots * len(definition.conditions)
    places = [n for n in range(1, most + 1) if paradigm.pilot_slots(design, pool, n) <= slots]
    return min(PARTICIPANTS, max(1, places[-1] - demo.WALK_INS))


def with_photographs(path: Path, terminal: Terminal) -> Path:
    """A copy of the study's folder with its photographs cut next to it."""
    folder = settings.VAR_DIR / "studies" / path.parent.name
    shutil.copytree(path.parent, folder, dirs_exist_ok=True)
    files = cut(folder / "photographs")
    terminal.line(f"{len(files)} crops of two photographs in {folder / 'photographs'}")
    return Path(folder) / path.name
