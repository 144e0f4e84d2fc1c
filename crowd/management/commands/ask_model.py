"""Lets a model take a study as a rater, over the HTTP API of a running server."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TextIO, TypeVar, cast

import httpx
from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from analysis.preference.scorer_commands import sentences_of
from crowd.joining.model_entry import check_offered_to_no_one, model_query
from experiments.asking import HEADING
from experiments.asking.chat import TIMEOUT_S, TRIES, Chat, RequestTotals, checked_address, host_of, is_here
from experiments.asking.choice_dialogue import AGAIN_MAX
from experiments.asking.preference_scorer_session import ScorerRater
from experiments.asking.prompts import ORDERS, PROMPTS, UNREAD
from experiments.asking.request_plan import (
    TRAINED,
    Answering,
    Manner,
    Seat,
    Trained,
    check_may_be_asked,
    open_seats,
    seats_of,
    tally_requests,
)
from experiments.asking.run import ModelOutcome, Way, ask_models
from experiments.definition.study import StudyDefinition
from experiments.errors import NotAdmitted, StudyError
from experiments.management.base import StudyCommand, study_of
from experiments.models import Study
from experiments.paradigms import design_of
from experiments.paradigms.rating import RatingDesign
from experiments.selectors import definition_of
from experiments.simulation.browser.connection import ServerRefusal
from experiments.study_files.load import find_study, load_study
from experiments.terminal import Terminal
from stimuli.predictors.vision_language import VisionLanguage, open_vision_language
from stimuli.preference.encoders import EMBEDDED, open_encoder
from stimuli.preference.scorer_file import load

Name = TypeVar("Name", bound=str)
HOST = "this machine"


class Command(StudyCommand):
    help = (
        "Let a model rate beside people: at an address of your choice, from a local folder, or a scorer of "
        "fit_preference. It never counts as people."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", help="a slug or the path of a study.toml")
        parser.add_argument("--address", default="", help="of the chat completions, as https://host/v1")
        parser.add_argument("--model", default="", help="its name at that address")
        parser.add_argument(
            "--folder",
            type=Path,
            help="in place of an address: a vision-language model, as transformers "
            "saves it; it answers with the most probable of the listed answers",
        )
        parser.add_argument("--device", default="cpu", help="where a model of a folder runs (cpu)")
        parser.add_argument(
            "--scorer", type=Path, help="in place of a model: a file that fit_preference wrote"
        )
        parser.add_argument(
            "--encoder", default=EMBEDDED, metavar="DIR", help="the one that the scorer was fitted with"
        )
        parser.add_argument(
            "-n", type=int, dest="count", help="how many plans (all of one round, so every explanation once)"
        )
        parser.add_argument("--first", type=int, default=0, help="the first plan's number (0)")
        parser.add_argument("--prompts", default="plain", help=f"some of {', '.join(PROMPTS)} (plain)")
        parser.add_argument(
            "--orders", default="given", help=f"how answers are listed: some of {', '.join(ORDERS)} (given)"
        )
        parser.add_argument(
            "--trained-on-data",
            choices=TRAINED,
            default="unknown",
            help="whether it was trained on the study's pictures or ratings, as far as you know (unknown)",
        )
        parser.add_argument("--temperature", type=float, help="sent only if it is given")
        parser.add_argument(
            "--timeout", type=float, default=TIMEOUT_S, help=f"seconds for one reply ({TIMEOUT_S:g})"
        )
        parser.add_argument("--concurrency", type=int, default=1, help="sessions at once (1)")
        parser.add_argument("--url", default="http://127.0.0.1:8000", help="the running server")
        parser.add_argument(
            "--faulty", type=Path, help="a file to which replies that cannot be read are added, as JSON lines"
        )
        parser.add_argument("--yes", action="store_true", help="do not ask before something leaves")

    def handle(self, *args: Any, study: str, **options: Any) -> None:
        named = bool(options["address"] or options["model"])
        if named + bool(options["folder"]) + bool(options["scorer"]) != 1 or (
            named and not (options["address"] and options["model"])
        ):
            raise CommandError(
                "Name who rates: a model by --address and --model, a model's --folder, or a --scorer."
            )
        if not named:
            _rate_here(study, options)
            return
        row, seats = _seats(study, options)
        chat = Chat(
            checked_address(options["address"], has_key=bool(settings.MODEL_KEY)),
            options["model"],
            settings.MODEL_KEY,
            timeout_s=options["timeout"],
            temperature=options["temperature"],
        )
        with Terminal() as terminal:
            terminal.line(HEADING)
            if not seats:
                terminal.line("Every one of these sessions has ended. Choose other plans, prompts or orders.")
                return
            for line in leaving_lines(chat, seats, tally_requests(row, seats)):
                terminal.line(line)
            if not options["yes"] and input("Send this? Type yes: ").strip() != "yes":
                raise CommandError("Nothing was sent.")
            faulty = options["faulty"].open("a", encoding="utf-8") if options["faulty"] else nullcontext()
            with faulty as file:
                taken = _ask(row, seats, chat, file, options, terminal)
            for line in outcome_lines(taken, chat.sent):
                terminal.line(line)
        if any(each.status == "open" for each in taken):
            raise CommandError(
                f"{sum(each.status == 'open' for each in taken)} sessions are not finished "
                f"({next(each.message for each in taken if each.status == 'open' and each.message)}). "
                "Run the same command again: what was answered is kept, and they go on after it."
            )


def _rate_here(study: str, options: dict[str, Any]) -> None:
    """The sessions of a folder's model or a scorer, of which nothing leaves this machine."""
    if strange := [name for name in ("temperature", "faulty") if options[name] is not None]:
        raise CommandError(f"--{strange[0]} is of models at an address: leave it out.")
    row = Study.objects.filter(slug=study).first() or study_of(_load_definition(study).slug)
    _check_free(row, may_see=True)
    definition = definition_of(row)
    rater, manners = (_scorer if options["scorer"] else _folder)(definition, options)
    seats = open_seats(row, seats_of(row, manners, options["count"], options["first"]))
    with Terminal() as terminal:
        terminal.line(HEADING)
        if not seats:
            terminal.line("Every one of these sessions has ended. Choose other plans, or another rater.")
            return
        terminal.line(here_line(seats))
        quiz = {question.id: question.answer for question in definition.quiz}
        way = Way(options["url"], lambda seat: model_query(row, seat), rater, quiz=quiz)
        taken = _run(row, seats, way, options, terminal)
        for line in outcome_lines(taken, None):
            terminal.line(line)


def _scorer(definition: StudyDefinition, options: dict[str, Any]) -> tuple[ScorerRater, list[Manner]]:
    if (options["prompts"], options["orders"]) != ("plain", "given"):
        raise CommandError("A scorer reads no prompt and no list of answers: leave out --prompts, --orders.")
    try:
        saved, encoder = load(options["scorer"]), open_encoder(options["encoder"], options["device"])
    except OSError as error:
        raise CommandError(f"{error.filename or options['scorer']}: {error.strerror}.") from error
    trained: Trained = options["trained_on_data"]
    if f'the study "{definition.slug}"' in str(saved.card.split.get("of")):
        trained = "yes"
    digest = hashlib.sha256(options["scorer"].read_bytes()).hexdigest()[:12]
    rater = ScorerRater(
        saved,
        encoder,
        [row.id for row in cast("RatingDesign", design_of(definition)).rows],
        {text: value for value, text in definition.choices},
        sentences_of(definition.slug, saved.card) if saved.card.inputs == "single" else {},
    )
    return rater, [Manner(f"scorer {digest}", HOST, UNREAD, "given", trained, "predicted")]


def _folder(definition: StudyDefinition, options: dict[str, Any]) -> tuple[VisionLanguage, list[Manner]]:
    rater = open_vision_language(options["folder"], options["device"])
    return rater, _manners(f"{rater.name} {rater.digest[:12]}", HOST, "likeliest", options)


def here_line(seats: Sequence[Seat]) -> str:
    """Who is going to rate, how it comes to its answers, and that nothing leaves."""
    manner = seats[0].manner
    how = (
        "It reads no page: quiz, training and checks are answered beside it"
        if manner.answering == "predicted"
        else f"Asked as {_asked_as(seats)}; it answers with the most probable of the listed answers"
    )
    return f"{len(seats)} sessions by {manner.model}; nothing leaves this machine. {how}."


def _load_definition(study: str) -> StudyDefinition:
    return load_study(find_study(study, tuple(settings.STUDY_DIRS)))


def _check_free(row: Study, *, may_see: bool) -> None:
    """Raises for a study that no model may take now."""
    check_may_be_asked(row, may_see)
    try:
        check_offered_to_no_one(row)
    except NotAdmitted as error:
        raise CommandError(str(error)) from error


def _seats(study: str, options: dict[str, Any]) -> tuple[Study, list[Seat]]:
    """The open study and the sessions that are still to be taken at an address, if its file allows it."""
    definition = _load_definition(study)
    row = study_of(definition.slug)
    if row.digest != definition.digest:
        raise StudyError(
            f"The file is not the study {row.slug!r} that is open (their digests differ), and it says "
            "whether a model may see the study: give the path of the file that was opened."
        )
    _check_free(row, may_see=definition.ethics.models_may_see)
    manners = _manners(options["model"], host_of(options["address"]), "written", options)
    return row, open_seats(row, seats_of(row, manners, options["count"], options["first"]))


def _manners(model: str, host: str, answering: Answering, options: dict[str, Any]) -> list[Manner]:
    """Each prompt with each order."""
    return [
        Manner(model, host, prompt, order, options["trained_on_data"], answering)
        for prompt in _choose_names("--prompts", options["prompts"], tuple(PROMPTS))
        for order in _choose_names("--orders", options["orders"], ORDERS)
    ]


def _asked_as(seats: Sequence[Seat]) -> str:
    manners = dict.fromkeys(seat.manner for seat in seats)
    return ", ".join(f"{manner.prompt}/{manner.order}" for manner in manners)


def _choose_names(option: str, given: str, known: Sequence[Name]) -> list[Name]:
    """The names of a list with commas, each once. Raises CommandError."""
    names = list(dict.fromkeys(part.strip() for part in given.split(",")))
    strange = [name for name in names if name not in known]
    if strange:
        raise CommandError(f"{option} {strange[0]!r}: choose among {', '.join(known)}.")
    return [name for name in known if name in names]


def leaving_lines(chat: Chat, seats: Sequence[Seat], sent: RequestTotals) -> list[str]:
    """The address, and all that is going to leave."""
    where = "this machine itself, which nothing leaves" if is_here(chat.address) else host_of(chat.address)
    return [
        f"Model {chat.model} at {chat.address} ({where}); {'with' if chat.key else 'without'} a key.",
        f"{len(seats)} sessions, asked as {_asked_as(seats)}: {sent.sentence()}.",
        "The texts are the study's instructions, pages and questions, and the answers to choose from. A "
        f"reply that cannot be read is asked again, at most {AGAIN_MAX} times, and a request that fails is "
        f"sent at most {TRIES} times; that comes on top.",
    ]


def _ask(
    study: Study,
    seats: Sequence[Seat],
    chat: Chat,
    file: TextIO | None,
    options: dict[str, Any],
    terminal: Terminal,
) -> list[ModelOutcome]:
    def told(name: str, fault: str, reply: str) -> None:
        if file is not None:
            row = {"session": name, "fault": fault, "reply": reply}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")

    way = Way(options["url"], lambda seat: model_query(study, seat), chat, told)
    return _run(study, seats, way, options, terminal)


def _run(
    study: Study, seats: Sequence[Seat], way: Way, options: dict[str, Any], terminal: Terminal
) -> list[ModelOutcome]:
    url = options["url"]
    try:
        return ask_models(study, seats, way, concurrency=options["concurrency"], progress=terminal.progress)
    except ServerRefusal as error:
        raise CommandError(str(error)) from error
    except httpx.HTTPError as error:
        raise CommandError(
            f"{url} does not answer ({error}). Start the server, or give another --url."
        ) from error


def outcome_lines(taken: Sequence[ModelOutcome], sent: RequestTotals | None) -> list[str]:
    """What became of the sessions, what was wrong with replies, and what left in all."""
    lines = []
    for status in dict.fromkeys(each.status for each in taken):
        same = [each for each in taken if each.status == status]
        why = "; ".join(dict.fromkeys(each.message for each in same if each.message))
        lines.append(f"{len(same)} {status}" + (f" ({why})" if why else ""))
    faults: dict[str, int] = {}
    for each in taken:
        for fault, count in each.faults.items():
            faults[fault] = faults.get(fault, 0) + count
    if faults:
        lines.append("Replies that could not be read: " + ", ".join(f"{n} {f}" for f, n in faults.items()))
    return [*lines, f"Sent: {sent.sentence()}."] if sent is not None else lines
