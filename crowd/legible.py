"""The command `legible`: all commands of Legible in groups, each with an example, and the way to run them."""

from __future__ import annotations

import ast
import os
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from crowd.management.early_refusals import refuse_early

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("experiments", "analysis", "crowd")
GROUPS: dict[str, tuple[tuple[str, str], ...]] = {
    "See it": (
        ("demo", "demo --participants 240"),
        ("login_link", "login_link"),
        ("screenshots", "screenshots wolf-or-husky"),
        ("showcase", "showcase --to pictures"),
        ("gallery", "gallery --to pictures"),
    ),
    "Prepare a study": (
        ("new", "new my-study --pictures pictures --weights model.pt"),
        ("copy_study", "copy_study wolf-or-husky my-first-study"),
        ("words", "words --template uk"),
        ("preview", "preview my-first-study/study.toml"),
        ("study_schema", "study_schema --out study.schema.json"),
        ("study_check", "study_check wolf-or-husky"),
        ("train_predictor", "train_predictor wolf-or-husky"),
        ("build_stimuli", "build_stimuli wolf-or-husky"),
        ("recheck_stimuli", "recheck_stimuli wolf-or-husky"),
        ("freeze", "freeze find-the-digit --look"),
        ("cut_photographs", "cut_photographs --out crops"),
        ("study_open", "study_open wolf-or-husky"),
        ("render_keys", "build_stimuli wolf-or-husky --processes 2"),
    ),
    "Collect answers": (
        ("publish", "publish wolf-or-husky --platform NAME --rehearse"),
        ("simulate", "simulate wolf-or-husky -n 24"),
        ("simulate_platform", "simulate_platform NAME"),
        ("ask_model", "ask_model rate-explanations --scorer scorer"),
        ("subscribe", "subscribe"),
        ("study_look", "study_look wolf-or-husky --by ada"),
        ("study_close", "study_close wolf-or-husky --by ada"),
        ("watch", "watch --once"),
        ("backup", "backup backups/today"),
        ("restore", "restore backups/today"),
        ("prune", "prune --list files.txt"),
    ),
    "People and money": (
        ("settle", "settle wolf-or-husky"),
        ("decide", "decide wolf-or-husky approve 64e27310 --by ada --message WHY"),
        ("grant", "grant wolf-or-husky 64e27310 1.40 --by ada --reason WHY"),
        ("send_messages", "send_messages wolf-or-husky"),
        ("exclude", "exclude earlier-studies --platform NAME < ids.txt"),
        ("demographics", "demographics wolf-or-husky people.csv"),
        ("forget", "forget wolf-or-husky --participant KEY"),
        ("study_role", "study_role wolf-or-husky ada --add view --by grace"),
    ),
    "Read the results": (
        ("report", "report wolf-or-husky --out report"),
        ("export", "export wolf-or-husky --out data"),
        ("verify", "verify data"),
        ("analyse", "analyse answers.csv --dv accuracy --between condition"),
        ("read_records", "read_records records.json"),
    ),
    "Predict what people think of an explanation": (
        ("fit_preference", "fit_preference rate-explanations --out scorer"),
        ("score", "score scorer --pictures maps"),
        ("rate_next", "rate_next scorer rate-explanations --out next.csv"),
        ("mixture", "mixture scorer rate-explanations --out mixture"),
        ("compare_backbones", "compare_backbones scorer rate-explanations --out sizes"),
        ("steer", "steer scorer rate-explanations --out steered"),
        ("ablate_preference", "ablate_preference rate-explanations --out parts"),
    ),
}
"""Group -> commands, each with an example; in the order in which a study meets them."""
WIDTH, GAP = 100, 21
DJANGO = "migrate, createsuperuser, changepassword, check --deploy"


def purpose(command: str) -> str:
    """The first sentence of the command's own help, read without importing what it needs."""
    path = next(
        ROOT / room / "management" / "commands" / f"{command}.py"
        for room in ROOMS
        if (ROOT / room / "management" / "commands" / f"{command}.py").exists()
    )
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "help":
            text = str(ast.literal_eval(node.value))
            return text.partition(". ")[0].rstrip(".") + "."
    return ""


def overview() -> str:
    lines = ["legible COMMAND [options]      one command; legible COMMAND --help tells its options"]
    for group, commands in GROUPS.items():
        lines += ["", group]
        for command, example in commands:
            told = textwrap.wrap(purpose(command), WIDTH - GAP)
            lines += [f"  {name:<18} {line}" for name, line in zip((command, *("",) * 9), told, strict=False)]
            lines.append(f"  {'':<18} legible {example}")
    lines += ["", f"From Django: {DJANGO}.", "What each does, in full: docs/running.md"]
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> None:
    asked = list(sys.argv[1:] if words is None else words)
    if not asked or asked in (["help"], ["--help"], ["-h"]):
        print(overview())
        return
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "crowd.settings")
    refuse_early(asked)
    from django.core.management import execute_from_command_line

    execute_from_command_line(["legible", *asked])


if __name__ == "__main__":
    main()
