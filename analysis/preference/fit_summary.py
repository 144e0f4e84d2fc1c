"""What a fit says: how much there was, scores beside what they must exceed, and the published table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from analysis.any_table.formats import NONE
from analysis.exports.delimited import write_rows
from analysis.preference.evaluation import METRICS, SCORER, SOURCES, Cell, Evaluation
from analysis.preference.rated_explanations import RatedExplanations
from analysis.preference.splits import Split
from analysis.reports.parts.published_ratings import PUBLISHED, ROWS, WHY_EMPTY
from experiments.terminal import Terminal
from stimuli.preference.encoders import EMBEDDED
from stimuli.preference.scorer_file import LIMITS

PLUS_MINUS = "\N{PLUS-MINUS SIGN}"
NOTES = (
    "Mean \N{PLUS-MINUS SIGN} sd over runs; in brackets the 95 % interval by drawing images and methods "
    "together. QWK: weighted kappa over the points 1 to 5. Spearman: of predictions that are not rounded. "
    "Every score, with its interval and the runs in which it is not defined, is in scores.csv."
)
NO_PLAIN = (
    "There is no row of picture properties alone, since some explanations have no map: whether the embedding "
    "knows more than area and place cannot be said."
)
OF_EMBEDDED = (
    'The encoder "histograms" was never trained and knows nothing of the world: its scores are no match for '
    "those of the published encoders."
)
OF_TWIN = (
    "Simulated, and no result on people. On the twin of properties their row is near the ceiling by "
    "construction, since the ratings were made of them."
)


def tell(
    terminal: Terminal, rated: RatedExplanations, splits: Sequence[Split], made: Evaluation, encoder: str
) -> None:
    """Print all of it."""
    for line in count_lines(rated, splits):
        terminal.line(line)
    for metric in METRICS:
        columns = (metric, *rated.questions)
        terminal.table(f"{metric} of predicted ratings", columns, list(_rows(made, metric)))
    for line in notes(rated, made, encoder):
        terminal.line(line)
    if len(rated.questions) == len(PUBLISHED["MSE"]["CLIP"].split()):
        columns = ("published, not recomputed", *(f"Q{place + 1}" for place in range(6)))
        for metric, rows in PUBLISHED.items():
            cells = [(name, *rows[name].split()) for name in ROWS]
            cells.append(("here", *[NONE] * 6))
            terminal.table(f"{metric}, PASTA's table 1", columns, cells)
        terminal.line(WHY_EMPTY)


def count_lines(rated: RatedExplanations, splits: Sequence[Split]) -> list[str]:
    """How much was rated, and how it was split."""
    given = int(rated.raters.sum())
    lines = [
        f"{len(rated.subjects):,} explanations of {len(set(rated.images)):,} images by "
        f"{len(set(rated.methods)):,} methods, {given:,} ratings of {len(rated.questions)} questions; "
        f"{rated.origin}."
    ]
    first = splits[0]
    held = f", {len(splits)} in turn" if first.held_out else f", {len(splits)} runs"
    shares = (f"{what} {count:,} ({count / len(rated.subjects):.1%})" for what, count in first.counts.items())
    return [*lines, f'Split "{first.name}"{held}; the first: {", ".join(shares)}.']


def notes(rated: RatedExplanations, made: Evaluation, encoder: str) -> Iterator[str]:
    yield NOTES
    yield "Rows: " + "; ".join(f"{name}, {SOURCES[name]}" for name in made.sources) + "."
    if rated.plain is None:
        yield NO_PLAIN
    if rated.planted is not None:
        yield OF_TWIN
    if encoder == EMBEDDED:
        yield OF_EMBEDDED
    undefined = sum(cell.over.undefined for cell in made.cells if cell.source == SCORER)
    if undefined:
        yield f"{undefined} scores of single runs are not defined; scores.csv counts them."
    yield LIMITS


def write(folder: Path, splits: Sequence[Split], made: Evaluation) -> None:
    """scores.csv with exact numbers, runs.csv with those of single runs, and splits.csv."""
    rows = [cell.table() for cell in made.cells]
    _write(folder / "scores.csv", rows)
    _write(folder / "runs.csv", made.runs)
    _write(folder / "splits.csv", [{"held_out": split.held_out, **split.counts} for split in splits])


def _write(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    columns = list(rows[0])
    write_rows(path, columns, (["" if row[c] is None else str(row[c]) for c in columns] for row in rows))


def _rows(made: Evaluation, metric: str) -> Iterator[tuple[str, ...]]:
    """Each source, and below the first one's its intervals."""
    for source in made.sources:
        cells = made.of(metric, source).values()
        yield (source, *(_over(cell) for cell in cells))
        if source == SCORER:
            yield ("", *(_ends(cell) for cell in cells))


def _over(cell: Cell) -> str:
    if cell.over.mean is None:
        return NONE
    sd = "" if cell.over.sd is None else f"{PLUS_MINUS}{cell.over.sd:.2f}"
    return f"{cell.over.mean:z.2f}{sd}".replace("-", "\N{MINUS SIGN}")


def _ends(cell: Cell) -> str:
    if cell.interval is None:
        return NONE
    ends = (f"{end:z.2f}".replace("-", "\N{MINUS SIGN}") for end in (cell.interval.low, cell.interval.high))
    return "[{},{}]".format(*ends)
