"""The steps of the demo: prepare, serve, send people, print. Everything simulated says so."""

from __future__ import annotations

import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from django.conf import settings

from analysis.stored_reports.demo_case_file import keep_beside, read_beside
from crowd.models import Posting
from crowd.rehearsal.demo.ceiling_training_items import unseen_items
from crowd.rehearsal.demo.folder_and_port import DemoFailed
from crowd.rehearsal.demo.observer_control_material import material, with_unseen
from crowd.rehearsal.demo.server import report_folder
from experiments.definition.study import StudyDefinition
from experiments.design.rng import Streams
from experiments.drafting.model_survey import ask
from experiments.management.commands.build_stimuli import build_study
from experiments.management.commands.simulate import outcome_rows
from experiments.models import Condition, Session, Slot, Study, Trial
from experiments.opening.opening import open_study, stored_pool
from experiments.paradigms import design_of, get_paradigm
from experiments.paradigms.screening import RULES
from experiments.selectors import definition_of
from experiments.sessions.lifecycle import ENDED, mark_left
from experiments.simulation import HEADING, KINDS_SAID
from experiments.simulation.browser.connection import ServerRefusal
from experiments.simulation.browser.participant_run import run_people
from experiments.simulation.browser.process_pool import Senders, SendingFailed
from experiments.simulation.browser.walk import Outcome
from experiments.simulation.controls.substitute_explanations import ControlReport, run_controls
from experiments.simulation.controls.text_markings import Texts
from experiments.simulation.people import Person
from experiments.simulation.population import parse_mix, populate, usual_mix
from experiments.study_files.load import load_study, material_folder
from experiments.terminal import Terminal
from stimuli.store import open_store

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

NO_CONTROLS = "This design explains nothing that an observer could learn from, so no controls ran."


EACH = 5
"""Steps of each study of a demo, its controls among them; a look for faults is one more."""


class Steps:
    """Numbers so many steps as they begin."""

    def __init__(self, terminal: Terminal, count: int) -> None:
        self.terminal, self.count, self.began = terminal, count, 0

    def __call__(self, what: str) -> None:
        self.began += 1
        self.terminal.line(f"\nStep {self.began} of {self.count}. {what}", "bold")


def prepare(
    path: Path,
    changes: dict[str, Any],
    terminal: Terminal,
    steps: Steps,
    tables: Callable[[], None] = lambda: None,
) -> Study:
    """Stimuli, plans, and an open posting on the local platform. `tables` waits for those of the database:
    until then the model is asked, whose answers the store keeps."""
    steps(f"Build {path.parent.name}: ask the model about every item, and draw every explanation.")
    definition = load_study(path, changes=changes)
    ask(definition, material_folder(path), open_store(settings.STORAGE_URL), terminal.progress)
    tables()
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
    senders: Senders | None = None,
) -> int:
    """Sends waves of simulated people until so many have passed; a wave replaces those who did not pass.
    `first` is the number of the first person; returns that of the next, who has not come. Without `senders`
    this process sends them alone.

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
    began, before = time.monotonic(), _pass_count(study)
    barren, barren_max = 0, BARREN if definition.plates is None else BARREN_CHECKED
    for _ in range(WAVES_MAX):
        passed = _pass_count(study)
        if passed >= wanted or barren >= barren_max:
            break
        coming = math.ceil((wanted - passed) / definition.sittings_max)
        people = populate(parse_mix(mix), coming, seed, first=first)
        outcomes += _wave(study, definition, url, people, terminal, senders)
        first += coming
        barren = barren + coming if _pass_count(study) == passed else 0
    passed = _pass_count(study)
    terminal.table("Simulated people", ("kind", "outcome", "sessions"), outcome_rows(tuple(outcomes)))
    took = time.monotonic() - began
    terminal.line(f"{sessions_line(outcomes, passed - before)} It took {took:.0f} s.")
    if passed < wanted:
        raise DemoFailed(
            _stop_reason(study, outcomes, wanted - passed, barren if barren >= barren_max else 0)
        )
    return first


def _pass_count(study: Study) -> int:
    return Slot.objects.filter(study=study, kept=True).count()


def _wave(
    study: Study,
    definition: StudyDefinition,
    url: str,
    people: Sequence[Person],
    terminal: Terminal,
    senders: Senders | None,
) -> tuple[Outcome, ...]:
    quiz = {question.id: question.answer for question in definition.quiz}
    send = senders.send if senders else run_people
    try:
        outcomes = send(
            url,
            study.slug,
            people,
            quiz=quiz,
            sittings=definition.sittings_max,
            progress=terminal.progress,
        )
    except (httpx.HTTPError, ServerRefusal, SendingFailed) as error:
        log = settings.VAR_DIR / "server.log"
        raise DemoFailed(f"The server failed its people ({error}). Look at {log}.") from error
    for session in Session.objects.filter(study=study, origin="simulated").exclude(state__in=ENDED):
        # The local platform reports who will not come back, as Prolific reports a returned submission.
        mark_left(session)
    return outcomes


def sessions_line(outcomes: Sequence[Outcome], passed: int) -> str:
    """Who came and how many of their sessions passed; people have as many sessions as the study has
    sessions."""
    came = len({outcome.person for outcome in outcomes})
    requests = sum(outcome.requests_count for outcome in outcomes)
    people = "1 person" if came == 1 else f"{came} people"
    sessions = "1 session" if len(outcomes) == 1 else f"{len(outcomes)} sessions"
    return f"{people} came for {sessions}, of which {passed} passed, with {requests:,} requests."


def _stop_reason(study: Study, outcomes: Sequence[Outcome], missing: int, barren: int) -> str:
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


def explains(study: Study) -> bool:
    """Whether the study's people learn from examples that are explained, as its controls do."""
    return Trial.objects.filter(slot__study=study, phase="train", explained=True).exists()


def made_meanwhile(with_cases: bool) -> dict[str, Any] | None:
    """What a report needs besides its rows, made while people take part: its modules, which take seconds to
    import, and the planted cases if they are to stand in it."""
    import matplotlib.figure  # noqa: F401

    import analysis.reports.meta_predictor.report
    import analysis.reports.output.files
    import analysis.stored_reports.refresh  # noqa: F401

    if not with_cases:
        return None
    from crowd.rehearsal.planted.case_lines import shipped_run

    return shipped_run()


def print_results(study: Study, terminal: Terminal, planted: dict[str, Any] | None = None) -> Report:
    """The report of the simulated people, printed, stored, and written as one page. `planted` are the cases
    that stand in a figure of their own."""
    # Imported here: statistics take seconds to import, and a demo that is looked at again needs none.
    from analysis.reports.output.terminal import print_report

    study.refresh_from_db()
    without = "" if explains(study) else NO_CONTROLS
    keep_beside(study.slug, study.digest, controls=None, without=without, planted=planted)
    report, page = _store_report(study)
    print_report(report, terminal.console)
    terminal.line(f"As one page: {page}")
    return report


def _store_report(study: Study) -> tuple[Report, Path]:
    from analysis.reports.output.files import write_page
    from analysis.stored_reports.refresh import store_report

    report = store_report(study, "simulated")
    return report, write_page(report, report_folder(study))


def print_faults(study: Study, folder: Path, terminal: Terminal) -> None:
    """What `study_open` measures before people come. Here the first report comes first, and then has it; the
    files of its figures and tables are written with it."""
    from analysis.reports.output.files import write_report
    from analysis.stored_reports.refresh import store_report
    from crowd.study_check.quality_record import measure_and_print

    measure_and_print(study, folder, terminal, MEASURED)
    write_report(store_report(study, "simulated"), report_folder(study))
    terminal.line(f"The report tells of them too now: {report_folder(study) / 'report.html'}")


def compare(study: Study, terminal: Terminal, steps: Steps) -> ControlReport | None:
    """The controls of a study that this demo or the last one ran, by what it kept of it."""
    kept = read_beside(study.slug, study.digest)
    steps("Compare with controls: the same observers with spoiled and with perfect explanations.")
    path = settings.VAR_DIR / kept["told"]
    return print_controls(study, Path(kept["file"]).parent, kept["seed"], terminal, path, kept["unseen"])


def go_on(study: Study, terminal: Terminal, faults: bool, steps: Steps | None = None) -> None:
    """What comes after the first report: the controls unless they are there, and the faults if asked for."""
    kept = read_beside(study.slug, study.digest)
    is_compared = bool(kept["controls"])
    steps = steps or Steps(terminal, (not is_compared) + faults)
    if not is_compared:
        compare(study, terminal, steps)
    if faults:
        steps("Look for faults of the explanations; a study is measured before people come.")
        print_faults(study, Path(kept["file"]).parent, terminal)


def print_controls(
    study: Study, folder: Path, seed: int, terminal: Terminal, path: Path, unseen: int = 0
) -> ControlReport | None:
    """The same observers on spoiled and on perfect explanations: what the table of the report is to be read
    against, and stands under it from then on. `unseen` pictures teach the ceiling; 0 leaves it out. None if
    there is no training."""
    if not explains(study):
        terminal.line(NO_CONTROLS)
        return None
    definition = definition_of(study)
    paradigm = get_paradigm(study.paradigm)
    pool = stored_pool(study, definition)
    plans = list(paradigm.plans(design_of(definition), pool, Streams(definition.seed)))
    explained = [c.name for c in definition.conditions if c.explainer]
    shown = material(study, folder)
    if unseen:
        further, none = unseen_items(study, definition, folder, unseen, terminal.progress)
        shown = with_unseen(shown, further)
        words = "texts" if isinstance(shown, Texts) else "pictures"
        terminal.line(none or f"The ceiling is learned from {len(further):,} unseen {words}.")
    report = run_controls(plans, explained, shown, seed=seed, progress=terminal.progress)
    path.write_text(json.dumps(report.as_json(), indent=2))
    keep_beside(study.slug, study.digest, controls=report.as_json())
    stored, page = _store_report(study)
    _print_table(stored, terminal)
    for fault in report.faults:
        terminal.line(fault)
    terminal.line(f"They stand under the table of the report now: {page}; per condition in {path}.")
    return report


def _print_table(report: Report, terminal: Terminal) -> None:
    from analysis.reports.output.terminal import print_table

    print_table(report.tables()["controls"], terminal.console)
