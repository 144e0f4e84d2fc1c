"""The rounds of a demo: what its options ask of each study, and each study from its stimuli to its report."""

from __future__ import annotations

import math
import multiprocessing
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.management import BaseCommand, CommandError, call_command

from analysis.stored_reports.demo_case_file import keep_beside
from crowd.rehearsal import networks
from crowd.rehearsal.demo.defaults import (
    ITEMS,
    PARTICIPANTS,
    SCENARIO_PARTICIPANTS,
    UNSEEN,
    USUAL,
    USUAL_ITEMS,
    USUAL_PARTICIPANTS,
)
from crowd.rehearsal.demo.folder_and_port import DemoFailed
from crowd.rehearsal.demo.multistage_study import check_sources, end_stage, print_routing, stages_of
from crowd.rehearsal.demo.server import print_addresses, print_done, print_end, serving, until_end
from crowd.rehearsal.demo.steps import (
    EACH,
    WALK_INS,
    Steps,
    compare,
    go_on,
    made_meanwhile,
    print_results,
    send_people,
)
from crowd.rehearsal.demo.steps import prepare as steps_prepare
from experiments.definition.study import StudyDefinition
from experiments.kinds import get_kind
from experiments.models import Slot, Study
from experiments.paradigms import design_of, get_paradigm
from experiments.paradigms.base import PlanCondition, Pool
from experiments.simulation.browser.process_pool import Senders, senders
from experiments.study_files.load import find_study, load_study
from experiments.terminal import Terminal
from stimuli.datasets.photographs import cut
from stimuli.store import open_store

if TYPE_CHECKING:
    from analysis.reports.report import Report
    from analysis.reports.utility.scenarios import Scenario

PHOTOGRAPHS = "grass-or-gravel"


@dataclass(frozen=True, slots=True)
class DemoWorld:
    """What all studies of a demo share: the server's address, the terminal, the command's options, the steps,
    and the processes that send people."""

    url: str
    terminal: Terminal
    options: Mapping[str, Any]
    steps: Steps
    people: Senders


def run(terminal: Terminal, options: dict[str, Any]) -> None:
    """The studies that the options name, one after another, and their server, which is left up."""
    every: list[str] | None = options["all_scenarios"]
    if every is None:
        names = [options["study"]]
    else:
        # Imported here and below: it needs statistics, which take seconds to import.
        from crowd.rehearsal.demo.colin_scenarios import SCENARIO_STUDIES, print_scenarios

        names = every or list(SCENARIO_STUDIES)
    # All are looked up and read before any work is done.
    folders = tuple(settings.STUDY_DIRS)
    paths = [find_study(name, folders) for name in names]
    paths = [with_photographs(p, terminal) if p.parent.name == PHOTOGRAPHS else p for p in paths]
    staged = [rounds_of(stages_of(path, folders), options) for path in paths]
    stays, url = not options["no_serve"], f"http://127.0.0.1:{options['port']}"
    each = EACH + options["faults"]
    steps = Steps(terminal, each * sum(len(stages) for stages in staged))
    if not options["train"]:
        networks.lay_in(open_store(settings.STORAGE_URL))
    first: list[Study] = []

    def prepare() -> None:
        for stages in staged:
            first.append(steps_prepare(stages[0].path, stages[0].changes, terminal, steps, tables))

    # The processes first: they are copies of this one, which has no threads yet and has read no rows. People
    # have half of the cores, as the server needs as much for them; each process looks at every picture anew.
    with (
        senders(max(1, (os.cpu_count() or 1) // 2)) as people,
        made_tables() as tables,
        serving(options["port"], url, prepare) as server,
    ):
        world = DemoWorld(url, terminal, options, steps, people)
        done = [run_stages(*pair, world) for pair in zip(first, staged, strict=True)]
        people.end()
        if every is not None:
            print_scenarios([made for _, made in done if made is not None], terminal)
        *ended, last = done[-1][0]
        if stays:
            print_addresses(last, url, terminal, options["faults"], ended)
        with until_end(server, stays):
            for study in (study for studies, _ in done for study in studies):
                go_on(study, terminal, options["faults"], steps)
            (print_end if stays else print_done)(last, terminal)


@contextmanager
def made_tables() -> Iterator[Callable[[], None]]:
    """The tables of the database, made in a process of its own, as the model can be asked without them; what
    is yielded waits for them. That process also runs the system checks, which read every address."""
    process = multiprocessing.get_context("fork").Process(target=_check_and_migrate, daemon=True)
    process.start()

    def wait() -> None:
        process.join()
        if process.exitcode:
            raise DemoFailed("The demo cannot begin; what stands above says why.")

    try:
        yield wait
    finally:
        process.join()


def _check_and_migrate() -> None:
    try:
        BaseCommand().check()
        call_command("migrate", verbosity=0)
    except CommandError as error:
        sys.exit(str(error))


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
        wanted, changes = scale_study(definition, participants or usual)
        if is_scenario:
            from crowd.rehearsal.demo.colin_scenarios import metric_tables

            changes = {**changes, "metrics": metric_tables()}
        return cls(path, definition, wanted, changes, is_scenario)

    def run(self, study: Study, world: DemoWorld, first: int) -> tuple[int, Report]:
        """From the simulated people to their report; the number of the next person."""
        options, terminal = world.options, world.terminal
        seed, unseen = options["seed"], options["unseen"]
        wanted = self.wanted or Slot.objects.filter(study=study).count()
        if unseen is None:
            unseen = UNSEEN if self.is_scenario else 0
        told = f"controls-{study.slug}.json" if self.is_scenario else "controls.json"
        keep_beside(study.slug, study.digest, file=str(self.path), seed=seed, unseen=unseen, told=told)
        world.steps("Send simulated people: they take part over HTTP, by the API of the browser's page.")
        with ThreadPoolExecutor(1) as beside:
            # Nothing but other processes is waited for meanwhile.
            cases = beside.submit(made_meanwhile, study.slug == USUAL and not self.is_scenario)
            coming = send_people(
                study, self.definition, world.url, wanted, seed, terminal, first=first, senders=world.people
            )
            print_routing(study, terminal)
            world.steps("Report what they did, as for people.")
            report = print_results(study, terminal, cases.result())
        return coming, report


def run_stages(
    study: Study, stages: Sequence[Round], world: DemoWorld
) -> tuple[list[Study], Scenario | None]:
    """One stage after the other, each from the solutions of the one before and with other people. `study` is
    the first, which is open. Scenarios are compared with their controls at once, as their table needs it."""
    studies, coming, scenario = [study], 0, None
    for place, stage in enumerate(stages):
        if place:
            end_stage(studies[-1], world.terminal)
            studies.append(steps_prepare(stage.path, stage.changes, world.terminal, world.steps))
        coming, report = stage.run(studies[-1], world, coming)
        if stage.is_scenario:
            from crowd.rehearsal.demo.colin_scenarios import scenario_of

            controls = compare(studies[-1], world.terminal, world.steps)
            scenario = scenario_of(studies[-1], report, controls)
    return studies, scenario


def scale_study(definition: StudyDefinition, participants: int | None) -> tuple[int, dict[str, Any]]:
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
    slots = paradigm.pilot_slots(design, pool, wanted + WALK_INS)
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
    """Those of `defaults`; if each trial is handed out alone, which takes many more requests, no more than
    the file has places for, less those for visitors."""
    paradigm, design = get_paradigm(definition.paradigm), design_of(definition)
    if not any(get_kind(kind).is_alone for kind in paradigm.kinds_of(definition)):
        return USUAL_PARTICIPANTS if definition.slug == USUAL else PARTICIPANTS
    slots = min(condition.slots for condition in definition.conditions)
    most = slots * len(definition.conditions)
    places = [n for n in range(1, most + 1) if paradigm.pilot_slots(design, pool, n) <= slots]
    return min(PARTICIPANTS, max(1, places[-1] - WALK_INS))


def with_photographs(path: Path, terminal: Terminal) -> Path:
    """A copy of the study's folder with its photographs cut next to it."""
    folder = settings.VAR_DIR / "studies" / path.parent.name
    shutil.copytree(path.parent, folder, dirs_exist_ok=True)
    files = cut(folder / "photographs")
    terminal.line(f"{len(files)} crops of two photographs in {folder / 'photographs'}")
    return Path(folder) / path.name
