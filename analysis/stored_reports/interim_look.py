"""A look at an open, sealed study, as its plan names it: one word is stored, and nothing of the test."""

from __future__ import annotations

from django.db import IntegrityError, transaction

from analysis.facts import StudyFacts
from analysis.models import TakenLook
from analysis.reports.utility.accuracy_anova import person_scores
from analysis.seal import seal_of
from analysis.stats.intervals_and_checks import Floats, StatsError
from analysis.stats.means.dunnett import dunnett
from analysis.stored_reports.departures import report_facts
from analysis.tables.response_reader import read_frames
from experiments.errors import StudyError
from experiments.models import Session, Study
from experiments.opening.preregistration_text import BOUNDARIES

HUMAN = Session.Origin.HUMAN


def take_look(study: Study, by: str) -> str:
    """Takes the look that is due and stores what it says, with the name of who asked; returns all that is
    said of it. Raises StudyError if the study is not open and sealed, its plan names no look, all are taken
    or none is due yet.
    """
    if not by.strip():
        raise StudyError("A look needs the name of who takes it.")
    facts = report_facts(study)
    number = _next(study, facts)
    people = facts.looks[number - 1]
    scores = _condition_accuracies(study, facts)
    least = min(map(len, scores.values()))
    if least < people:
        taken = "".join(
            f" Look {r['number']} was taken on {r['at'][:10]} by {r['by']}." for r in facts.looks_taken
        )
        raise StudyError(
            f"No look is due: look {number} of {len(facts.looks)} is at {people} people kept in every "
            f"condition, and the smallest has {least}.{taken}"
        )
    first = {name: values[:people] for name, values in scores.items()}
    answer = TakenLook.Answer.STOP if _is_passed(first, facts, number) else TakenLook.Answer.CONTINUE
    try:
        with transaction.atomic():
            look = TakenLook.objects.create(
                study=study, number=number, people=people, answer=answer, looked_by=by
            )
    except IntegrityError:
        raise StudyError(
            f"Look {number} was taken by another person at this moment; see the report."
        ) from None
    return _sentence(look, facts)


def _sentence(look: TakenLook, facts: StudyFacts) -> str:
    boundary = BOUNDARIES[facts.preregistration["document"]["boundary"]]
    of = f"Look {look.number} of {len(facts.looks)} at {look.people} people per condition, {boundary}"
    return f"{of}: {look.answer}"


def _next(study: Study, facts: StudyFacts) -> int:
    """The number of the look that comes next. Raises StudyError if there is none."""
    if not facts.looks:
        raise StudyError(
            f"The plan of {study.slug} names no looks ([preregistration] looks), so none may be taken."
        )
    if study.state != Study.State.OPEN:
        raise StudyError(f"{study.slug} is {study.state}; a look is taken while a study is open.")
    for row in facts.looks_taken:
        if row["answer"] == "stop":
            raise StudyError(
                f"Look {row['number']} was taken on {row['at'][:10]} by {row['by']} and said stop: close the "
                "study, and its results open."
            )
    if not (seal := seal_of(facts, HUMAN)).sealed:
        raise StudyError(f"The results are open already, so there is nothing to look at. {seal.sentence}")
    if len(facts.looks_taken) == len(facts.looks):
        raise StudyError(f"All {len(facts.looks)} planned looks are taken; the next test is that of the end.")
    return len(facts.looks_taken) + 1


def _condition_accuracies(study: Study, facts: StudyFacts) -> dict[str, Floats]:
    """The accuracies of the people of the main result by condition, in the order in which they finished."""
    frames = read_frames(study).only(HUMAN).kept()
    people, _ = person_scores(frames)
    finished = frames.participants.set_index("session")["finished_at"]
    # Two people may finish within one millisecond; the session's name decides between them.
    people = people.assign(finished=finished).rename_axis("session").sort_values(["finished", "session"])
    return {
        c.name: people.loc[people["condition"] == c.name, "accuracy"].to_numpy(dtype=float)
        for c in facts.conditions
    }


def _is_passed(groups: dict[str, Floats], facts: StudyFacts, number: int) -> bool:
    """Whether the smallest p of the planned contrasts reaches the look's level."""
    try:
        test = dunnett(groups, facts.baseline)
    except StatsError:
        # No spread, no test; a message would tell of the scores.
        return False
    return min(contrast.p for contrast in test.comparisons) <= facts.levels[number - 1]
