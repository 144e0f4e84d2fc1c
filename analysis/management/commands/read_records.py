"""Reads ratings in PASTA's record format, of any study."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pandas as pd
from django.core.management.base import CommandError

from analysis.exports.delimited import write_frame, writing
from analysis.pasta_records import ratings_from
from analysis.reports.output.terminal import print_table
from analysis.reports.rating.pasta_record_summary import sentences, tables
from experiments.management.base import StudyCommand
from experiments.terminal import Terminal

SEED = 0
"""Of the draws of raters and explanations."""


class Command(StudyCommand):
    help = (
        "Read ratings in PASTA's record format: print means and agreement, write single answers as a table."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a JSON file of records, of at most 20 MiB")
        parser.add_argument(
            "--out", type=Path, metavar="FILE", help="write every single answer there, as CSV"
        )

    def handle(self, *args: Any, file: Path, out: Path | None, **options: Any) -> None:
        answers = ratings_from(file)
        if answers.empty:
            raise CommandError(f"{file.name}: holds no records; give a file with at least one.")
        with Terminal() as terminal:
            for line in sentences(answers):
                terminal.line(line)
            made, problems = tables(answers, SEED, terminal.progress)
            for table in made:
                print_table(table, terminal.console)
            for line in problems:
                terminal.line(line)
            if out is not None:
                _write(answers, out)
                terminal.line(f"{out}: {len(answers):,} answers.")


def _write(answers: pd.DataFrame, out: Path) -> None:
    """The table as CSV. An existing file is not overwritten."""
    with writing(out):
        out.open("x").close()
        write_frame(out, answers)
