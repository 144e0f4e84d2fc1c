"""Analyses anybody's table by the design that the options name."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from analysis.any_table.analyse import AnalysisPlan, analyse, at_look
from analysis.any_table.result_tables import Results
from analysis.any_table.table import BadTable, Roles, UnclearWords, read_table, tidy
from analysis.exports.delimited import write_rows, writing
from analysis.reports.output.terminal import print_table
from analysis.spreadsheet_cells import escape_cell
from analysis.stats.means.paired import CORRECTIONS
from analysis.stats.planning.sequential_looks import LookPlan
from experiments.management.base import StudyCommand
from experiments.terminal import Terminal


class Command(StudyCommand):
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
        for name, what in (
            ("subject", "who answered; else a row is a person"),
            ("item", "what was answered; cells are averaged"),
            ("signal", "1 if yes is right, 0 if no is; for d' and criterion"),
            ("correlate", "a number beside each answer, for correlations"),
            ("times", "response times, in one unit"),
        ):
            parser.add_argument(f"--{name}", default="", metavar="COLUMN", help=what)
        for name, what in (
            ("missing", "a word, such as NA, that means a missing value in columns of names"),
            ("level", "a word, such as NA, that is a name like others"),
        ):
            parser.add_argument(
                f"--{name}", action="append", default=[], metavar="WORD", help=f"{what}; may be given again"
            )
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
            "--chance", type=float, metavar="C", help="what chance would give, for a test of each mean"
        )
        parser.add_argument(
            "--squares",
            default="III",
            choices=("II", "III"),
            help="the type of sums of squares of several factors",
        )
        parser.add_argument(
            "--correction", default="holm", choices=tuple(CORRECTIONS), help="of p of pairs within people"
        )
        parser.add_argument(
            "--mixed-model",
            action="store_true",
            help="also take people and items as random; may take minutes",
        )
        _add_looks(parser)
        parser.add_argument("--seed", type=int, default=0, help="of random halves and permutations")
        parser.add_argument(
            "--out", type=Path, metavar="DIR", help="write each table there as CSV, and the notes"
        )

    def handle(self, *args: Any, table: Path, out: Path | None, **options: Any) -> None:
        columns = {name: options[name] for name in ("dv", "subject", "item", "times", "signal", "correlate")}
        several: dict[str, Any] = {name: tuple(options[name]) for name in ("between", "within")}
        roles = Roles(**columns, **several, covariates=tuple(options["covariate"]))
        declared = ("control", "plan", "separate_variances", "margin", "chance", "correction", "mixed_model")
        chosen = {name: options[name] for name in (*declared, "seed")}
        plan = AnalysisPlan(sum_of_squares=options["squares"], **chosen)
        source = tidy(
            read_table(table), roles, UnclearWords(tuple(options["missing"]), tuple(options["level"]))
        )
        if options["look"] is not None:
            # No table, no note: what a look has seen stays unknown to the people who run the study.
            looks = LookPlan(_shares(options["looks"]), options["spending"])
            self.stdout.write(at_look(source, plan, looks, options["look"]))
            return
        results = analyse(source, plan)
        with Terminal() as terminal:
            for line in results.notes:
                terminal.line(line)
            for made in results.tables:
                print_table(made.printable(), terminal.console)
            for line in results.problems:
                terminal.line(line, "yellow")
            if out is not None:
                terminal.line(f"{out}: {', '.join(_write(results, out))}.")


def _add_looks(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--look",
        type=int,
        metavar="NUMBER",
        help="print continue or stop at this planned look, nothing else",
    )
    parser.add_argument(
        "--looks", default="", metavar="SHARES", help="shares of all people at the looks, as in 0.5,1"
    )
    parser.add_argument(
        "--spending",
        default="obrien_fleming",
        choices=("obrien_fleming", "pocock"),
        help="how error is spent over the looks",
    )


def _shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise BadTable(
            f"The looks are {text!r}; name the shares of all people by --looks, as in 0.5,1."
        ) from None


def _write(results: Results, folder: Path) -> list[str]:
    """One CSV per table with exact numbers, and notes.txt; returns the names. Nothing is overwritten."""
    names = []
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for table in results.tables:
            path = folder / f"{table.key}.csv"
            path.open("x").close()
            # A table that leaves this folder still says of which level its intervals are.
            level = {"confidence_level": table.level} if table.has_intervals else {}
            columns = [*table.columns, *level]
            cells = ([_exact({**row, **level}.get(name)) for name in columns] for row in table.rows)
            write_rows(path, columns, cells)
            names.append(path.name)
        with (folder / "notes.txt").open("x", encoding="utf-8") as notes:
            notes.writelines(f"{line}\n" for line in (*results.notes, *results.problems))
    return [*names, "notes.txt"]


def _exact(value: object) -> str:
    """A number with all its digits; text that no spreadsheet evaluates."""
    if value is None:
        return ""
    return escape_cell(value) if isinstance(value, str) else repr(value)
