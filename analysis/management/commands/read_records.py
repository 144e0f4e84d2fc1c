"""Reads ratings in PASTA's record format, of any study."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pandas as pd
from django.core.management.base import BaseCommand, CommandError

from analysis.exports.cells import guarded
from analysis.exports.delimited import write_rows
from analysis.records import BadRecords, ratings_from
from analysis.reports.recorded import sentences, tables
from analysis.reports.text import print_table
from experiments.terminal import Terminal

SEED = 0
"""Of the draws of raters and explanations."""


class Command(BaseCommand):
    help = (
        "Read ratings in PASTA's record format: print means and agreement, write single answers as a table."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a JSON file of records, of at most 20 MiB")
        parser.add_argument(
            "--out", type=Path, metavar="FILE", help="write every single answer there, as CSV"
        )

    def handle(self, *args: Any, file: Path, out: Path | None, **options: Any) -> None:
        try:
            answers = ratings_from(file)
        except BadRecords as error:
            raise CommandError(str(error)) from error
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
    try:
        out.open("x").close()
        cells = (["" if pd.isna(v) else guarded(str(v)) for v in row] for row in answers.to_numpy(object))
        write_rows(out, list(answers.columns), cells)
    except OSError as error:
        raise CommandError(f"{out} cannot be written ({error.strerror}): name another --out.") from error
