"""The steps of the demo: prepare, serve, send people, print. Everything simulated says so."""

from __future__ import annotations

import json
import math
import os
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from django.conf import settings

from crowd.models import Posting
from crowd.rehearsal.kept import DemoFailed
from crowd.rehearsal.materials import material, with_unseen
from crowd.rehearsal.shown import report_folder
from crowd.rehearsal.unseen import unseen_items
from experiments.definition import StudyDefinition
from experiments.design.rng import Streams
from experiments.management.commands.build_stimuli import build_study
from experiments.management.commands.simulate import outcome_rows
from experiments.models import Condition, Session, Slot, Study
from experiments.opening import open_study, stored_pool
from experiments.paradigms import design_of, get_paradigm
from experiments.paradigms.screening import RULES
from experiments.selectors import definition_of
from experiments.sessions import ENDED, mark_left
from experiments.simulation import HEADING, KINDS_SAID
from experiments.simulation.client import run_people
from experiments.simulation.controls import ControlReport, run_controls
from experiments.simulation.line import Refused
from experiments.simulation.people import Person
from experiments.simulation.population import parse_mix, populate, usual_mix
from experiments.simulation.text_controls import Texts
from experiments.simulation.walk import Outcome
from experiments.terminal import Terminal

if TYPE_CHECKING:
    from analysis.reports.report import Report

WALK_INS = 8
"""Places that stay free for people who look at a demo."""
RENDERERS_MAX = 4
"""Each holds the network, torch included: about 1 GB."""
WAVES_MAX = 40
BARREN = 5
"""So many people in a row of whom none passes are no chance: of the usual mixes one in five may fail."""
BARREN_CHECKED = 20
"""The same where a colour check sends away up to half of those who come."""
MEASURED = 40
"""Items whose explanations are measured: enough to see a fault, a third of the time of all."""


SHORT = {
    "baseline": "none",
    "shown": "as shown",
    "permuted": "permuted in place",
    "other_image": "of another item",
    "oracle": "planted region",
    "ceiling": "unseen items",
}


class Steps:
    """Numbers the steps of a demo as they begin; `studies` are built and run in it."""

    EACH = 6

    def __init__(self, terminal: Terminal, studies: int) -> None:
        self.terminal, self.count, self.began = terminal, self.EACH * studies, 0

    def __call__(self, what: str) -> None:
        self.began += 1
        self.terminal.line(f"\nStep {self.began} of {self.count}. {what}", "bold")


def prepare(path: Path, changes: dict[str, Any], terminal: Terminal, steps: Steps) -> Study:
    """Stimuli, plans, and an open posting on the local platform."""
    steps(f"Build {path.parent.name}: ask the model about every item, and draw every explanation.")
    slug = build_study(path, terminal, changes, processes=min(RENDERERS_MAX, os.cpu_count() or 1))
    steps("Open it: plan each participant's trials, and freeze the definition.")
    study = open_study(Study.objects.get(slug=slug), terminal.progress)
    Posting.objects.get_or_create(study=study, platform="local", state=Posting.State.OPEN)
    conditions = Condition.objects.filter(study=study).count()
    if "stimuli" in changes:
        items = changes["stimuli"]["items"]
        terminal.line(f"This demo draws {items} items; with --participants N it draws all of the file.")
    terminal.line(
        f"{slug} is open: {Slot.objects.filter(study=study).count()} slots in {conditions} conditions."
    )
    return study


def send_people(
    study: Study,
    definition: StudyDefinition,
    url: str,
    wanted: int,
    seed: int,
    terminal: Terminal,
    *,
    first: int = 0,
) -> int:
    """Sends waves of simulated people until so many have passed; a wave replaces those who did not pass.
    `first` is the number of the first person; returns that of the next, who has not come.

    Raises DemoFailed if `wanted` is not reached in WAVES_MAX waves, and after the first wave of which none
    passed, unless fewer people came since one did than may fail in a row.
    """
    mix = usual_mix(get_paradigm(definition.paradigm), design_of(definition))
    rows = [(kind, KINDS_SAID[kind], f"{share:.0%}") for kind, share in parse_mix(mix).shares.items()]
    terminal.table(f"{HEADING} Who comes (seed {seed})", ("kind", "what it does", "share"), rows)
    slots = Slot.objects.filter(study=study).count()
    if slots < wanted:
        wanted = slots - min(WALK_INS, slots // 4)
        terminal.line(
            f"The design has {slots} places: {wanted} people are to pass, the others are for visitors."
        )
    outcomes: list[Outcome] = []
    began, before = time.monotonic(), _passed(study)
    barren, barren_max = 0, BARREN if definition.plates is None else BARREN_CHECKED
    for _ in range(WAVES_MAX):
        passed = _passed(study)
        if passed >= wanted or barren >= barren_max:
            break
        coming = math.ceil((wanted - passed) / definition.sittings_max)
        people = populate(parse_mix(mix), coming, seed, first=first)
        outcomes += _wave(study, definition, url, people, terminal)
        first += coming
        barren = barren + coming if _passed(study) == passed else 0
    passed = _passed(study)
    terminal.table("Simulated people", ("kind", "outcome", "sessions"), outcome_rows(tuple(outcomes)))
    took = time.monotonic() - began
    terminal.line(f"{sessions_line(outcomes, passed - before)} It took {took:.0f} s.")
    if passed < wanted:
        raise DemoFailed(_stopped(study, outcomes, wanted - passed, barren if barren >= barren_max else 0))
    return first


def _passed(study: Study) -> int:
    return Slot.objects.filter(study=study, kept=True).count()


def _wave(
    study: Study, definition: StudyDefinition, url: str, people: Sequence[Person], terminal: Terminal
) -> tuple[Outcome, ...]:
    quiz = {question.id: question.answer for question in definition.quiz}
    sittings = definition.sittings_max
    try:
        outcomes = run_people(
            url, study.slug, people, quiz=quiz, sittings=sittings, progress=terminal.progress
        )
    except (httpx.HTTPError, Refused) as error:
        log = settings.VAR_DIR / "server.log"
        raise DemoFailed(f"The server failed its people ({error}). Look at {log}.") from error
    for session in Session.objects.filter(study=study, origin="simulated").exclude(state__in=ENDED):
        # The local platform reports who will not come back, as Prolific reports a returned submission.
        mark_left(session)
    return outcomes


def sessions_line(outcomes: Sequence[Outcome], passed: int) -> str:
    """Who came and how many of their sessions passed; people have as many sessions as the study has
    sittings."""
    came = len({outcome.person for outcome in outcomes})
    requests = sum(outcome.requests_count for outcome in outcomes)
    people = "1 person" if came == 1 else f"{came} people"
    sessions = "1 session" if len(outcomes) == 1 else f"{len(outcomes)} sessions"
    return f"{people} came for {sessions}, of which {passed} passed, with {requests:,} requests."


def _stopped(study: Study, outcomes: Sequence[Outcome], missing: int, barren: int) -> str:
    """Why no more people are sent: what the sessions failed at, and what can be done."""
    sessions = Session.objects.filter(study=study, origin="simulated").values_list("reasons", flat=True)
    rules = Counter(reason["rule"] for reasons in sessions for reason in reasons)
    failed = [
        f"{rule} ({RULES[rule].meaning if rule in RULES else 'there was no place for them'}): {count}"
        for rule, count in rules.most_common()
    ]
    failed += [
        f"{status.replace('_', ' ')}: {count}"
        for status, count in Counter(outcome.status for outcome in outcomes).most_common()
        if status not in ("finished", "screened")
    ]
    why = (
        f"None of the last {barren} people passed"
        if barren
        else f"After {WAVES_MAX} waves {missing} more were still to pass"
    )
    return (
        f"{why}, so nobody else is sent. What sessions failed at: {'; '.join(failed) or 'nothing known'}. "
        "Look at the limits in [screening] and at the texts and questions of the study, change what nobody "
        f"can pass, and start again. The server's log is {settings.VAR_DIR / 'server.log'}."
    )


def print_results(study: Study, terminal: Terminal) -> Report:
    """The report of the simulated people, printed, stored, and written as one page."""
    # Imported here: statistics take seconds to import, and a demo that is looked at again needs none.
    from analysis.refresh import store_report
    from analysis.reports.files import write_page
    from analysis.reports.text import print_report

    study.refresh_from_db()
    report = store_report(study, "simulated")
    print_report(report, terminal.console)
    terminal.line(f"As one page: {write_page(report, report_folder(study))}")
    return report


def print_faults(study: Study, folder: Path, terminal: Terminal) -> None:
    """What `study_open` measures before people come. Here the first report comes first, and then has it; the
    files of its figures and tables are written with it."""
    from analysis.refresh import store_report
    from analysis.reports.files import write_report
    from crowd.recruiting.measured import measure_and_print

    measure_and_print(study, folder, terminal, MEASURED)
    write_report(store_report(study, "simulated"), report_folder(study))
    terminal.line(f"The report tells of them too now: {report_folder(study) / 'report.html'}")


def print_controls(
    study: Study, folder: Path, seed: int, terminal: Terminal, path: Path, unseen: int = 0
) -> ControlReport | None:
    """The same observers on spoiled and on perfect explanations: what the table above is to be read
    against. `unseen` pictures teach the ceiling; 0 leaves it out. None if there is no training."""
    definition = definition_of(study)
    paradigm = get_paradigm(study.paradigm)
    pool = stored_pool(study, definition)
    plans = list(paradigm.plans(design_of(definition), pool, Streams(definition.seed)))
    explained = [c.name for c in definition.conditions if c.explainer]
    if not any(trial.phase == "train" and trial.explained for plan in plans for trial in plan.trials):
        terminal.line("This design explains nothing that an observer could learn from, so no controls ran.")
        return None
    shown = material(study, folder)
    if unseen:
        further, none = unseen_items(study, definition, folder, unseen, terminal.progress)
        shown = with_unseen(shown, further)
        words = "texts" if isinstance(shown, Texts) else "pictures"
        terminal.line(none or f"The ceiling is learned from {len(further):,} unseen {words}.")
    report = run_controls(plans, explained, shown, seed=seed, progress=terminal.progress)
    path.write_text(json.dumps(report.as_json(), indent=2))
    rows = [
        (
            row.observer,
            SHORT[row.control],
            row.answers_count,
            f"{100 * row.accuracy:.1f} [{100 * row.low:.1f}, {100 * row.high:.1f}]",
            f"{100 * row.gain:+.1f} [{100 * row.gain_low:+.1f}, {100 * row.gain_high:+.1f}]",
        )
        for row in report.rows
        if not row.condition or len(explained) == 1
    ]
    heads = ("observer", "explanation", "answers", "accuracy %", "gain")
    terminal.table("Controls of the observers", heads, rows)
    for fault in report.faults:
        terminal.line(fault)
    terminal.line(f"{report.heading} The same observers on the first sittings; per condition in {path}.")
    return report
