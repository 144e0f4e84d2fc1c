"""Sends simulated people through the real HTTP API of a running server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import httpx
from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from experiments.management.base import StudyCommand
from experiments.paradigms import design_of, get_paradigm
from experiments.simulation import HEADING
from experiments.simulation.browser.connection import ServerRefusal
from experiments.simulation.browser.participant_run import run_people
from experiments.simulation.browser.walk import Outcome
from experiments.simulation.people import Person
from experiments.simulation.population import DEFAULT_MIX, drawn_traits, parse_mix, populate, usual_mix
from experiments.study_files.load import find_study, load_study
from experiments.terminal import Terminal


class Command(StudyCommand):
    help = "Let simulated people take part over HTTP. Everything they leave says that it is simulated."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", help="a slug or the path of a study.toml")
        parser.add_argument(
            "-n", type=int, default=24, dest="count", help="how many people come (default 24)"
        )
        parser.add_argument("--url", default="http://127.0.0.1:8000", help="the running server")
        parser.add_argument(
            "--mix", help=f"kinds and shares (default: by what the study shows; of pictures {DEFAULT_MIX})"
        )
        parser.add_argument("--seed", type=int, default=1, help="draws the people (default 1)")
        parser.add_argument(
            "--first", type=int, default=0, help="number of the first person, for a later wave"
        )
        parser.add_argument("--concurrency", type=int, default=8, help="how many at once (default 8)")

    def handle(self, *args: Any, study: str, count: int, url: str, mix: str | None, **options: Any) -> None:
        try:
            definition = load_study(find_study(study, tuple(settings.STUDY_DIRS)))
            usual = usual_mix(get_paradigm(definition.paradigm), design_of(definition))
            people = populate(parse_mix(mix or usual), count, options["seed"], options["first"])
            with Terminal() as terminal:
                terminal.line(HEADING)
                for line in population_lines(people):
                    terminal.line(line)
                outcomes = run_people(
                    url,
                    definition.slug,
                    people,
                    quiz={question.id: question.answer for question in definition.quiz},
                    sittings=definition.sittings_max,
                    concurrency=options["concurrency"],
                    progress=terminal.progress,
                )
                counted = "sessions" if definition.sittings_max > 1 else "people"
                terminal.table("What became of them", ("kind", "outcome", counted), outcome_rows(outcomes))
        except ServerRefusal as error:
            raise CommandError(str(error)) from error
        except httpx.HTTPError as error:
            raise CommandError(
                f"{url} does not answer ({error}). Start the server, or give another --url."
            ) from error
        if all(outcome.status == "turned_away" for outcome in outcomes):
            messages = sorted({outcome.message for outcome in outcomes})
            raise CommandError(f"Nobody was let in. The server said: {'; '.join(messages)}")


def population_lines(people: Sequence[Person]) -> list[str]:
    """What was drawn for each kind: mean, least and greatest value of every trait."""
    return [
        f"{row.count} {row.kind}: "
        + ", ".join(
            f"{name} {mean:.2f} ({low:.2f} to {high:.2f})" for name, (mean, low, high) in row.traits.items()
        )
        for row in drawn_traits(people)
    ]


def outcome_rows(outcomes: tuple[Outcome, ...]) -> list[tuple[str, str, int]]:
    counted = Counter((outcome.kind, outcome.status) for outcome in outcomes)
    return [(kind, status, count) for (kind, status), count in sorted(counted.items())]
