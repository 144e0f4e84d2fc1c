"""Analyses anybody's table by the design that the options name."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from analysis.analyse import AnalysisPlan, analyse
from analysis.exports.delimited import guarded, write_rows
from analysis.reports.text import print_table
from analysis.result_tables import Results
from analysis.stats.results import StatsError
from analysis.tidy import BadTable, Roles, read_table, tidy
from experiments.terminal import Terminal


class Command(BaseCommand):
    help = "Analyse any tidy table: tests, effect sizes and intervals of the design that its columns have."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("table", type=Path, help="a CSV or Parquet file, one row per answer")
        parser.add_argument("--dv", required=True, metavar="COLUMN", help="what was measured, a number")
        for name, what in (
            ("between", "a factor between people; may be given again"),
            ("within", "a factor within people; may be given again"),
            ("covariate", "a number per person that is held constant; may be given again"),
        ):
            parser.add_argument(f"--{name}", action="append", default=[], metavar="COLUMN", help=what)
        parser.add_argument(
            "--subject", default="", metavar="COLUMN", help="who answered; else a row is a person"
        )
        parser.add_argument(
            "--item", default="", metavar="COLUMN", help="what was answered; cells are averaged"
        )
        parser.add_argument("--times", default="", metavar="COLUMN", help="response times, in one unit")
        parser.add_argument(
            "--control", default="", metavar="LEVEL", help="compare every level with this one"
        )
        parser.add_argument(
            "--plan", default="", choices=("dunnett", "tukey", "games_howell"), help="the planned comparisons"
        )
        parser.add_argument(
            "--separate-variances", action="store_true", help="Dunnett's test with a variance per group"
        )
        parser.add_argument(
            "--margin", type=float, default=0.0, metavar="M", help="smallest effect, for equivalence"
        )
        parser.add_argument(
            "--squares",
            default="III",
            choices=("II", "III"),
            help="the type of sums of squares of several factors",
        )
        parser.add_argument(
            "--correction", default="holm", choices=("holm", "bh"), help="of p of pairs within people"
        )
        parser.add_argument(
            "--mixed-model",
            action="store_true",
            help="also take people and items as random; may take minutes",
        )
        parser.add_argument("--seed", type=int, default=0, help="of random halves and permutations")
        parser.add_argument(
            "--out", type=Path, metavar="DIR", help="write each table there as CSV, and the notes"
        )

    def handle(self, *args: Any, table: Path, out: Path | None, **options: Any) -> None:
        roles = Roles(
            dv=options["dv"],
            between=tuple(options["between"]),
            within=tuple(options["within"]),
            subject=options["subject"],
            item=options["item"],
            covariates=tuple(options["covariate"]),
            times=options["times"],
        )
        plan = AnalysisPlan(
            control=options["control"],
            plan=options["plan"],
            separate_variances=options["separate_variances"],
            margin=options["margin"],
            sum_of_squares=options["squares"],
            correction=options["correction"],
            mixed_model=options["mixed_model"],
            seed=options["seed"],
        )
        try:
            results = analyse(tidy(read_table(table), roles), plan)
        except (BadTable, StatsError) as error:
            raise CommandError(str(error)) from error
        with Terminal() as terminal:
            for line in results.notes:
                terminal.line(line)
            for made in results.tables:
                print_table(made.printable(), terminal.console)
            for line in results.problems:
                terminal.line(line, "yellow")
            if out is not None:
                terminal.line(f"{out}: {', '.join(_write(results, out))}.")


def _write(results: Results, folder: Path) -> list[str]:
    """One CSV per table with exact numbers, and notes.txt; returns the names. Nothing is overwritten."""
    names = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for table in results.tables:
            path = folder / f"{table.key}.csv"
            path.open("x").close()
            cells = ([_exact(row.get(name)) for name in table.columns] for row in table.rows)
            write_rows(path, list(table.columns), cells)
            names.append(path.name)
        with (folder / "notes.txt").open("x", encoding="utf-8") as notes:
            notes.writelines(f"{line}\n" for line in (*results.notes, *results.problems))
    except OSError as error:
        raise CommandError(f"{folder} cannot be written ({error.strerror}): name another --out.") from error
    return [*names, "notes.txt"]


def _exact(value: object) -> str:
    """A number with all its digits; text that no spreadsheet evaluates."""
    if value is None:
        return ""
    return guarded(value) if isinstance(value, str) else repr(value)
