"""The tables of a run, and in words which goals were met."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks import beside, desk, preference, reading, study, volume
from benchmarks.processes import Taken
from benchmarks.rendering import FAMILY_NAME, SIX_NAME, Group, Measured, Row

BOUND_GOAL, FAMILY_GOAL, HOST_GOAL = 1.15, 8.0, 0.10


def met(is_met: bool, goal: str) -> str:
    return f"(goal {goal}: {'met' if is_met else 'missed'})"


def table(title: str, heads: Sequence[str], rows: Iterable[Iterable[object]], words: int = 1) -> Table:
    """A table whose first `words` columns stand to the left, and its numbers to the right."""
    made = Table(title=title)
    for place, head in enumerate(heads):
        made.add_column(head, justify="left" if place < words else "right")
    for row in rows:
        made.add_row(*map(str, row))
    return made


def show_rendering(console: Console, measured: Measured, called: str, device: str) -> None:
    """Two tables and the goals for one network on one device."""
    title = f"Rendering: {called}, {device}, batches of {measured.batch}"
    heads: tuple[str, ...] = (
        *("method", "through", "library s", "planner s", "times", "library passes"),
        *("ours", "least", "host %"),
    )
    console.print(table(title, heads, map(_method_cells, measured.rows), words=2))
    console.print(
        "~ extrapolated from a part (by passes). F forwards, B backwards (of which each went forwards too), "
        "T from the layer on. Libraries have the ordinary memory layout and weights as loaded; planner alone "
        "= one method in a drive of its own."
    )
    heads = (
        *("", "methods", "libraries", "planner, one by one", "together", "passes", "least"),
        *("x bare (clock)", "x bare (CPU)", "host %"),
    )
    title = "Together, in one drive; seconds per picture"
    console.print(table(title, heads, map(_group_cells, measured.groups)))
    console.print(
        "bare = the same number of passes in the same batches with nothing around them: every fourth batch "
        "of a drive was also run bare, so that both saw the same machine. Passes are those that were run."
    )
    for group in measured.groups:
        _say_goals(console, group)
        _say_once(console, group)
    peaks = ", ".join(
        f"{side} {peak / 1000:.2f} GB ({start / 1000:.2f} after loading)"
        for side, (start, peak) in measured.memory.items()
    )
    console.print(f"peak memory: {peaks}")


def _method_cells(row: Row) -> list[str]:
    theirs, ours = row.theirs_s, row.ours_s
    part = "~" if row.ours.is_cut else ""
    theirs_part = "~" if row.theirs.share < 1 else ""
    if ours is None:
        return [row.method.name, row.method.library, _seconds(theirs, theirs_part), "not offered", *[""] * 5]
    return [
        row.method.name,
        row.method.library,
        _seconds(theirs, theirs_part),
        _seconds(ours, part),
        "" if theirs is None else f"{part or theirs_part}{theirs / ours:.1f}",
        "" if theirs is None else str(row.theirs.passes),
        str(row.ours.passes),
        str(row.run * row.images),
        f"{row.ours.host:.1%}",
    ]


def _seconds(value: float | None, sign: str) -> str:
    return "cannot" if value is None else f"{sign}{value:.2f}"


def _group_cells(group: Group) -> list[object]:
    part = "~" if any(row.ours.is_cut for row in group.rows) else ""
    over = group.over_bound
    return [
        group.name,
        len(group.rows),
        *(f"{part}{value:.2f}" for value in (group.theirs_s, group.alone_s, group.together_s)),
        group.cost.passes,
        group.run * group.images,
        *(("", "") if over is None else (f"{over[0]:.3f}", f"{over[1]:.3f}")),
        f"{group.cost.host:.1%}",
    ]


def _say_once(console: Console, group: Group) -> None:
    if group.cost.once_s:
        console.print(
            f"left out above: {group.cost.once_s:.1f} s, once per network and process, to cut the network "
            "behind its layer (for Ablation-CAM)"
        )


def _say_goals(console: Console, group: Group) -> None:
    clock, cpu = group.times
    goal = f" {met(clock >= FAMILY_GOAL, 'at least 8')}" if group.name == FAMILY_NAME else ""
    console.print(
        f"{group.name}: {clock:.1f} times as fast as the libraries{goal}, {cpu:.1f} in processor time"
    )
    if group.over_bound is not None:
        clock, cpu = group.over_bound
        goal = f" {met(clock <= BOUND_GOAL, 'at most 1.15')}" if group.name == SIX_NAME else ""
        console.print(f"{group.name}: {clock:.2f} times the bare passes{goal}, {cpu:.2f} in processor time")
        host = met(group.cost.host < HOST_GOAL, "under 10 %")
        console.print(f"{group.name}: {group.cost.host:.1%} of the time outside the network {host}")


def show_study(console: Console, run: study.Measured) -> None:
    """The outcome of the study, and the workers' memory over time."""
    rendering_s = run.wall_s - run.prepared_s
    console.print(
        f"Study: {run.plan.items} items, {run.plan.methods} methods and the baseline, {study.WORKERS} "
        f"workers, {run.kills} of them killed with kill -9 while they rendered"
    )
    console.print(
        f"{run.done} of {run.expected} stimuli done, {run.keys} different keys, {run.failed} failed, "
        f"{run.lost_files} pictures missing or cut off (goal complete, nothing twice: "
        f"{'met' if run.is_complete else 'missed'})"
    )
    console.print(
        f"{rendering_s:.0f} s of rendering after {run.prepared_s:.0f} s of preparation: "
        f"{run.done / rendering_s:.1f} stimuli per s"
    )
    console.print(_memory(run))


def _memory(run: study.Measured) -> Table:
    rows = []
    for worker in sorted({sample.worker for sample in run.samples}):
        samples = [sample for sample in run.samples if sample.worker == worker]
        end = samples[-1].age_s
        moments = (10.0, end / 3, 2 * end / 3, end)
        at = [
            next((each.mb for each in samples if each.age_s >= moment), samples[-1].mb) for moment in moments
        ]
        most = max(each.mb for each in samples)
        rows.append((worker + 1, *(f"{value:.0f}" for value in (end, *at, most))))
    heads = ("worker", "s alive", "after 10 s", "at a third", "at two thirds", "at the end", "most")
    return table("Memory of each worker with its child, MB, by its age", heads, rows)


def show_volume(console: Console, taken: list[Taken]) -> None:
    """Each command at each number of answers, beside the smallest number."""
    least = {row.side: row for row in reversed(taken)}
    rows = [
        (
            row.side, f"{row.answers:,}", f"{row.peak_mib:.0f}",
            f"{row.peak_mib / least[row.side].peak_mib:.2f}", f"{row.wall_s:.0f}",
            f"{row.cpu_s:.0f}", f"{row.answers / row.wall_s:.0f}",
        )
        for row in taken
    ]  # fmt: skip
    heads = ("command", "answers", "peak MiB", "x the least", "s", "CPU s", "answers per s")
    console.print(table("Many answers: each command in a process of its own, SQLite", heads, rows))
    for command, goal_mib in volume.GOALS_MIB.items():
        most = max(row.peak_mib for row in taken if row.side == command)
        console.print(f"{command}: {most:.0f} MiB at most {met(most <= goal_mib, f'under {goal_mib:g} MiB')}")


def show_desk(console: Console, pages: list[desk.Page]) -> None:
    """Each page with few and with many people."""
    rows = [
        (
            page.name, f"{page.people:,}", page.queries,
            f"{page.first_s:.2f}", f"{page.usual_s:.3f}", f"{page.kilobytes:.0f}",
        )
        for page in sorted(pages, key=lambda page: (page.name, page.people))
    ]  # fmt: skip
    heads = ("page", "people", "queries", "first s", "usual s", "kB")
    console.print(table("The researcher's pages, SQLite, in one process", heads, rows))


def show_beside(console: Console, taken: list[Taken]) -> None:
    """Our sides beside the plain script: medians of the rounds, and of the ratios within a round."""
    by = {side: [row for row in taken if row.side == side] for side in beside.SIDES}
    rows = []
    for side, costs in by.items():
        pairs = list(zip(costs, by["plain"], strict=True))
        rows.append(
            (
                beside.WORDS[side],
                f"{median(row.wall_s for row in costs):.1f}",
                f"{median(row.wall_s / base.wall_s for row, base in pairs):.2f}",
                f"{median(row.cpu_s for row in costs):.1f}",
                f"{median(row.cpu_s / base.cpu_s for row, base in pairs):.2f}",
                f"{max(row.peak_mib for row in costs):.0f}",
            )
        )
    title = f"A package of {taken[0].answers:,} answers, in turns, {len(by['plain'])} rounds"
    console.print(table(title, ("", "s", "x plain", "CPU s", "x plain", "peak MiB"), rows))
    console.print(f"F and Tukey's p of the first two are the same. {beside.MORE}")


def show_reading(console: Console, taken: dict[str, list[reading.Reading]]) -> None:
    """Both readers of a table, and the ratios of their costs."""
    rows = [
        (
            side,
            f"{median(each.cpu_s for each in of):.2f}",
            f"{median(each.peak_mib for each in of):.0f}",
        )
        for side, of in taken.items()
    ]
    title = f"A table of {reading.ROWS:,} rows, read in turns, {reading.ROUNDS} rounds"
    console.print(table(title, ("reader", "CPU s", "MiB"), rows))
    cpu, memory = reading.ratios(taken)
    cpu_met = met(median(cpu) <= reading.CPU_BAR, f"at most {reading.CPU_BAR:g}")
    console.print(f"CPU {median(cpu):.2f} times pandas' ({min(cpu):.2f} to {max(cpu):.2f}) {cpu_met}")
    memory_met = met(memory <= reading.MEMORY_BAR, f"at most {reading.MEMORY_BAR:g}")
    console.print(f"memory {memory:.2f} times pandas' {memory_met}; the cells are the same")


def show_preference(console: Console, measured: preference.Preference) -> None:
    """The encoder beside its bare forward, the ensemble beside its heads one by one, then the whole fit."""
    bare, ours = measured.bare_s / measured.pictures, measured.embedding_s / measured.pictures
    console.print(
        f"PASTA-score, embedding of {measured.pictures} pictures by a ViT-B/16-shaped CLIP tower of random "
        f"weights: {1 / ours:.1f} images/s, bare forward {1 / bare:.1f}: {ours / bare:.2f} times the seconds"
    )
    heads = preference.QUESTIONS * preference.SEEDS
    names = {"together": "one ensemble", "alone": "one by one", "twin": "whole fit of the twin"}
    rows = [
        (
            names[row.side], row.columns, row.epochs, f"{row.wall_s:.0f}", f"{row.cpu_s:.0f}",
            f"{row.peak_mib:.0f}", f"{row.kappa:.3f}",
        )
        for row in (measured.together, measured.alone, measured.whole)
    ]  # fmt: skip
    title = f"{heads} heads on {preference.ROWS:,} embeddings, {preference.CORES} threads"
    columns = ("", "columns", "epochs", "s", "processor s", "peak MiB", "mean kappa")
    console.print(table(title, columns, rows))
    console.print(
        f"The ensemble takes {measured.together.wall_s / measured.alone.wall_s:.2f} times the seconds of its "
        f"heads one by one; their predicted ratings differ by {measured.difference:.1e} at most."
    )
    is_met = measured.whole.wall_s < preference.GOAL_S
    console.print(
        f"The whole fit of the twin, drawing, embedding, baseline and intervals with it: "
        f"{measured.whole.wall_s:.0f} s {met(is_met, f'under {preference.GOAL_S} s')}"
    )
