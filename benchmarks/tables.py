"""The tables of a run, and in words which goals were met."""

from __future__ import annotations

from statistics import median

from rich.console import Console
from rich.table import Table

from benchmarks import beside, desk, preference, study, volume
from benchmarks.rendering import FAMILY_NAME, SIX_NAME, Group, Measured, Row

BOUND_GOAL, FAMILY_GOAL, HOST_GOAL = 1.15, 8.0, 0.10


def met(is_met: bool, goal: str) -> str:
    return f"(goal {goal}: {'met' if is_met else 'missed'})"


def show_rendering(console: Console, measured: Measured, called: str, device: str) -> None:
    """Two tables and the goals for one network on one device."""
    console.print(_methods(measured, f"Rendering: {called}, {device}, batches of {measured.batch}"))
    console.print(
        "~ extrapolated from a part (by passes). F forwards, B backwards (of which each went forwards too), "
        "T from the layer on. Libraries have the ordinary memory layout and weights as loaded; planner alone "
        "= one method in a drive of its own."
    )
    console.print(_groups(measured))
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


def _methods(measured: Measured, title: str) -> Table:
    table = Table(title=title)
    for head in (
        "method",
        "through",
        "library s",
        "planner s",
        "times",
        "library passes",
        "ours",
        "least",
        "host %",
    ):
        table.add_column(head, justify="left" if head in ("method", "through") else "right")
    for row in measured.rows:
        table.add_row(*_cells(row))
    return table


def _cells(row: Row) -> list[str]:
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


def _groups(measured: Measured) -> Table:
    table = Table(title="Together, in one drive; seconds per picture")
    for head in (
        "",
        "methods",
        "libraries",
        "planner, one by one",
        "together",
        "passes",
        "least",
        "x bare (clock)",
        "x bare (CPU)",
        "host %",
    ):
        table.add_column(head, justify="right" if head else "left")
    for group in measured.groups:
        part = "~" if any(row.ours.is_cut for row in group.rows) else ""
        over = group.over_bound
        table.add_row(
            group.name,
            str(len(group.rows)),
            *(f"{part}{value:.2f}" for value in (group.theirs_s, group.alone_s, group.together_s)),
            str(group.cost.passes),
            str(group.run * group.images),
            *(("", "") if over is None else (f"{over[0]:.3f}", f"{over[1]:.3f}")),
            f"{group.cost.host:.1%}",
        )
    return table


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
    table = Table(title="Memory of each worker with its child, MB, by its age")
    table.add_column("worker")
    for head in ("s alive", "after 10 s", "at a third", "at two thirds", "at the end", "most"):
        table.add_column(head, justify="right")
    for worker in sorted({sample.worker for sample in run.samples}):
        samples = [sample for sample in run.samples if sample.worker == worker]
        end = samples[-1].age_s
        moments = (10.0, end / 3, 2 * end / 3, end)
        at = [
            next((each.mb for each in samples if each.age_s >= moment), samples[-1].mb) for moment in moments
        ]
        most = max(each.mb for each in samples)
        table.add_row(str(worker + 1), f"{end:.0f}", *(f"{value:.0f}" for value in (*at, most)))
    return table


def show_volume(console: Console, taken: list[volume.Taken]) -> None:
    """Each command at each number of answers, beside the smallest number."""
    table = Table(title="Many answers: each command in a process of its own, SQLite")
    for head in ("command", "answers", "peak MiB", "x the least", "s", "CPU s", "answers per s"):
        table.add_column(head, justify="left" if head == "command" else "right")
    least = {row.side: row for row in reversed(taken)}
    for row in taken:
        table.add_row(
            row.side, f"{row.answers:,}", f"{row.peak_mib:.0f}",
            f"{row.peak_mib / least[row.side].peak_mib:.2f}", f"{row.wall_s:.0f}",
            f"{row.cpu_s:.0f}", f"{row.answers / row.wall_s:.0f}",
        )  # fmt: skip
    console.print(table)
    for command, goal_mib in volume.GOALS_MIB.items():
        most = max(row.peak_mib for row in taken if row.side == command)
        console.print(f"{command}: {most:.0f} MiB at most {met(most <= goal_mib, f'under {goal_mib:g} MiB')}")


def show_desk(console: Console, pages: list[desk.Page]) -> None:
    """Each page with few and with many people."""
    table = Table(title="The researcher's pages, SQLite, in one process")
    for head in ("page", "people", "queries", "first s", "usual s", "kB"):
        table.add_column(head, justify="left" if head == "page" else "right")
    for page in sorted(pages, key=lambda page: (page.name, page.people)):
        table.add_row(
            page.name, f"{page.people:,}", str(page.queries),
            f"{page.first_s:.2f}", f"{page.usual_s:.3f}", f"{page.kilobytes:.0f}",
        )  # fmt: skip
    console.print(table)


def show_beside(console: Console, taken: list[volume.Taken]) -> None:
    """Our sides beside the plain script: medians of the rounds, and of the ratios within a round."""
    by = {side: [row for row in taken if row.side == side] for side in beside.SIDES}
    table = Table(title=f"A package of {taken[0].answers:,} answers, in turns, {len(by['plain'])} rounds")
    for head in ("", "s", "x plain", "CPU s", "x plain", "peak MiB"):
        table.add_column(head, justify="right" if head else "left")
    for side, rows in by.items():
        pairs = list(zip(rows, by["plain"], strict=True))
        table.add_row(
            beside.WORDS[side],
            f"{median(row.wall_s for row in rows):.1f}",
            f"{median(row.wall_s / base.wall_s for row, base in pairs):.2f}",
            f"{median(row.cpu_s for row in rows):.1f}",
            f"{median(row.cpu_s / base.cpu_s for row, base in pairs):.2f}",
            f"{max(row.peak_mib for row in rows):.0f}",
        )
    console.print(table)
    console.print(f"F and Tukey's p of the first two are the same. {beside.MORE}")


def show_preference(console: Console, measured: preference.Preference) -> None:
    """The encoder beside its bare forward, the ensemble beside its heads one by one, then the whole fit."""
    bare, ours = measured.bare_s / measured.pictures, measured.embedding_s / measured.pictures
    console.print(
        f"PASTA-score, embedding of {measured.pictures} pictures by a ViT-B/16-shaped CLIP tower of random "
        f"weights: {1 / ours:.1f} images/s, bare forward {1 / bare:.1f}: {ours / bare:.2f} times the seconds"
    )
    heads = preference.QUESTIONS * preference.SEEDS
    table = Table(title=f"{heads} heads on {preference.ROWS:,} embeddings, {preference.CORES} threads")
    for head in ("", "columns", "epochs", "s", "processor s", "peak MiB", "mean kappa"):
        table.add_column(head, justify="left" if not head else "right")
    names = {"together": "one ensemble", "alone": "one by one", "twin": "whole fit of the twin"}
    for row in (measured.together, measured.alone, measured.whole):
        table.add_row(
            names[row.side], str(row.columns), str(row.epochs), f"{row.wall_s:.0f}", f"{row.cpu_s:.0f}",
            f"{row.peak_mib:.0f}", f"{row.kappa:.3f}",
        )  # fmt: skip
    console.print(table)
    console.print(
        f"The ensemble takes {measured.together.wall_s / measured.alone.wall_s:.2f} times the seconds of its "
        f"heads one by one; their predicted ratings differ by {measured.difference:.1e} at most."
    )
    is_met = measured.whole.wall_s < preference.GOAL_S
    console.print(
        f"The whole fit of the twin, drawing, embedding, baseline and intervals with it: "
        f"{measured.whole.wall_s:.0f} s {met(is_met, f'under {preference.GOAL_S} s')}"
    )
