"""Makes the first study.toml from a folder of pictures and a network, by five questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from crowd.new_study.picture_folder import look_at_folder
from crowd.new_study.study_choices import Channels, Wishes, make_new_study
from crowd.new_study.study_files import PARADIGMS
from experiments.errors import sentence
from experiments.management.base import StudyCommand
from experiments.terminal import Terminal
from stimuli.store import open_store

CHANNELS = 3


class Command(StudyCommand):
    help = (
        "Make a study of your own pictures and network: a study.toml and its texts that study_check does not "
        "refuse. What no option says is asked."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="of the new study; its name is the study's slug")
        parser.add_argument("--pictures", help="the folder of pictures, one folder per class in it")
        parser.add_argument("--weights", help="the network's state dict (.pt, .pth, .safetensors), or a .pt2")
        parser.add_argument(
            "--network",
            help="FILE.py:CLASS of the state dict, or an architecture's name (found from the weights)",
        )
        parser.add_argument("--answers", help="the two classes that people are asked about, as A,B")
        parser.add_argument("--paradigm", choices=PARADIGMS, help=f"what people do ({PARADIGMS[0]})")
        parser.add_argument("--contact", help="the address that people may write to")
        parser.add_argument(
            "--labels", default="", help="the network's answers in order, as A,B,C (the classes by name)"
        )
        parser.add_argument(
            "--shows", default="pictures", help='what the pictures are, such as "photographs of leaves"'
        )
        parser.add_argument(
            "--input-px", type=int, default=224, help="side of the network's pictures in training (224)"
        )
        parser.add_argument(
            "--mean", help="of its training, for pictures in 0-1: one number or three, as 0.5,0.5,0.5"
        )
        parser.add_argument("--std", help="as --mean")

    def handle(self, *args: Any, folder: Path, **options: Any) -> None:
        if folder.exists():
            raise CommandError(f"{folder} is there already: name another folder.")
        with Terminal() as terminal:
            named = options["pictures"] or ask("Folder of pictures, one folder per class in it")
            looked = look_at_folder(Path(named).expanduser()) if named else None
            for line in looked.lines if looked else ():
                terminal.line(sentence(line))
            weights = options["weights"] or ask("File of the network's state dict, or its .pt2")
            network = options["network"]
            if network is None and weights and not weights.endswith(".pt2"):
                network = ask("Its class, as FILE.py:CLASS", "a known architecture")
            answers = options["answers"]
            if answers is None:
                answers = ask("Which two classes are people asked about, as A,B", "those most often confused")
            paradigm = options["paradigm"] or ask(
                f"What do people do: {' or '.join(PARADIGMS)}", PARADIGMS[0]
            )
            contact = options["contact"] or ask("Address that people may write to")
            given = {"--pictures": named, "--weights": weights, "--contact": contact}
            if missing := [option for option, value in given.items() if not value]:
                raise CommandError(
                    f"Nothing was written: there is no answer to {', '.join(missing)}. Give it."
                )
            if paradigm not in PARADIGMS and paradigm:
                raise CommandError(f"paradigm = {paradigm!r}: one of {', '.join(PARADIGMS)} is made here.")
            assert looked is not None
            wishes = Wishes(
                folder=folder,
                pictures=looked,
                weights=Path(weights).expanduser(),
                contact=contact,
                network=network or "",
                answers=names_in(answers),
                paradigm=paradigm or PARADIGMS[0],
                labels=names_in(options["labels"]),
                shows=options["shows"],
                input_px=options["input_px"],
                mean=channels_in("--mean", options["mean"]),
                std=channels_in("--std", options["std"]),
            )
            store = open_store(settings.STORAGE_URL)
            path = make_new_study(
                wishes, store, terminal.progress, lambda line: terminal.line(sentence(line))
            )
            terminal.line(f"{path} is a study of its own, with its texts. Read them. Then:")
            for command in ("preview", "study_check", "study_open"):
                terminal.line(f"  legible {command} {folder}", is_whole=True)
            terminal.line(f"  legible publish {folder.name}", is_whole=True)


def ask(question: str, default: str = "") -> str:
    """The answer typed at the terminal; "" for the default, and if there is none to ask."""
    try:
        return input(f"{question}{f' [{default}]' if default else ''}: ").strip()
    except EOFError:
        return ""


def names_in(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def channels_in(option: str, text: str | None) -> Channels | None:
    """One number for three channels, or three."""
    if text is None:
        return None
    try:
        numbers = [float(number) for number in text.split(",")]
    except ValueError:
        numbers = []
    if len(numbers) not in {1, CHANNELS}:
        raise CommandError(f"{option} = {text!r}: give one number, or three with commas.")
    first, second, third = numbers * (CHANNELS // len(numbers))
    return first, second, third
