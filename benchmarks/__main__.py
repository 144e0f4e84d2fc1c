"""`python -m benchmarks`: measured, never asserted, on servers of its own on this machine."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from rich.console import Console
from rich.table import Table

from benchmarks import desk, pictures, preference, reading, rendering, serving, study, volume
from benchmarks.methods import METHODS
from benchmarks.serving import LATER
from benchmarks.tables import (
    met,
    show_beside,
    show_desk,
    show_preference,
    show_reading,
    show_rendering,
    show_study,
    show_volume,
    table,
)

Found = TypeVar("Found")
PARTS = ("serving", "rendering", "study", "volume", "desk", "preference", "reading")
SHARE_GOAL, CPU_GOAL_MS, PADDING_GOAL_MS = 0.6, 2.0, 1.0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measures Legible on this machine."
    )
    parser.add_argument("--only", choices=PARTS, help="one part instead of all")
    _serving_options(parser.add_argument_group("serving"))
    _rendering_options(parser.add_argument_group("rendering"))
    _study_options(parser.add_argument_group("study"))
    options = parser.parse_args()
    serve, render = _serving_plan(parser, options), _rendering_plan(parser, options)
    build = _study_plan(parser, options)
    console = Console(width=140)
    chosen = PARTS if options.only is None else (options.only,)
    if "serving" in chosen:
        _serving(console, serve)
    if "rendering" in chosen:
        _rendering(console, render)
    if "study" in chosen:
        show_study(console, _watch(console, partial(study.measure, build)))
    if "volume" in chosen:
        taken, sides = _watch(console, volume.measure)
        show_volume(console, taken)
        show_beside(console, sides)
    if "desk" in chosen:
        show_desk(console, _watch(console, desk.measure))
    if "preference" in chosen:
        show_preference(console, _watch(console, preference.measure))
    if "reading" in chosen:
        show_reading(console, _watch(console, reading.measure))
    return 0


def _watch(console: Console, measure: Callable[[Callable[[str], None]], Found]) -> Found:
    """What is measured; meanwhile the terminal says what is being done."""
    with console.status("") as status:
        return measure(status.update)


def _serving_options(parser: argparse._ArgumentGroup) -> None:
    usual = serving.Plan()
    parser.add_argument("--people", type=int, default=usual.people, help="respondents at once (200)")
    parser.add_argument("--rounds", type=int, default=usual.rounds, help="measured rounds of each kind (3)")
    parser.add_argument(
        "--answers", type=int, default=usual.answers, help="answers of a person per round (20)"
    )
    parser.add_argument("--workers", type=int, default=usual.workers, help="processes of the web server (1)")


def _rendering_options(parser: argparse._ArgumentGroup) -> None:
    parser.add_argument(
        "--images", type=int, default=2, help="pictures for methods of few passes (2, at most 8)"
    )
    parser.add_argument(
        "--network", default="resnet50,vit_b16", help="resnet50, vit_b16, vit_s16; with commas"
    )
    parser.add_argument("--methods", default="", help="names with commas; all without")


def _study_options(parser: argparse._ArgumentGroup) -> None:
    usual, most = study.Plan(), len(study.METHODS)
    parser.add_argument("--items", type=int, default=usual.items, help="items of the study (1000)")
    parser.add_argument(
        "--conditions", type=int, default=usual.methods, help=f"methods of the study ({most}, the most)"
    )
    parser.add_argument("--kills", type=int, default=usual.kills, help="workers that are killed (10)")


def _study_plan(parser: argparse.ArgumentParser, options: argparse.Namespace) -> study.Plan:
    if not 8 <= options.items <= 5000:
        parser.error("--items must be between 8 and 5000")
    if not 1 <= options.conditions <= len(study.METHODS):
        parser.error(f"--conditions must be between 1 and {len(study.METHODS)}")
    if options.kills < 0:
        parser.error("--kills must be at least 0")
    return study.Plan(options.items, options.conditions, options.kills)


def _serving_plan(parser: argparse.ArgumentParser, options: argparse.Namespace) -> serving.Plan:
    plan = serving.Plan(options.people, options.rounds, options.answers, options.workers)
    if min(plan.people, plan.rounds, plan.answers, plan.workers) < 1:
        parser.error("each number must be at least 1")
    return plan


def _rendering_plan(parser: argparse.ArgumentParser, options: argparse.Namespace) -> rendering.Plan:
    known = {method.name: method for method in METHODS}
    names = [name for name in options.methods.split(",") if name] or list(known)
    for name in names:
        if name not in known:
            parser.error(f"--methods has {name!r}; measured are {', '.join(known)}")
    networks = options.network.split(",")
    for name in networks:
        if name not in rendering.NETWORKS:
            parser.error(f"--network has {name!r}; known are {', '.join(rendering.NETWORKS)}")
    if not 1 <= options.images <= 8:
        parser.error("--images must be between 1 and 8")
    return rendering.Plan(networks, options.images, [known[name] for name in names])


def _rendering(console: Console, plan: rendering.Plan) -> None:
    for name in plan.networks:
        for device, called in rendering.devices():
            measured = _watch(console, partial(rendering.measure, name, device, plan))
            show_rendering(console, measured, rendering.NETWORKS[name], called)


def _serving(console: Console, plan: serving.Plan) -> None:
    with serving.stage(plan.workers) as on:
        measured, has_torch = serving.measure(on, plan)
        shown = pictures.measure(on, plan)
    console.print(_serving_table(plan, measured))
    bare, ours, first, last = measured
    share = ours.rate / bare.rate
    console.print(f"rate beside the bare view: {share:.0%} {met(share >= SHARE_GOAL, 'at least 60 %')}")
    cpu_goal = met(ours.server_ms <= CPU_GOAL_MS, "at most 2 ms")
    console.print(f"server CPU per response: {ours.server_ms:.2f} ms {cpu_goal}")
    console.print(
        f"CPU of response {LATER} beside response 1: {last.server_ms:.2f} against {first.server_ms:.2f} ms "
        f"({last.server_ms / first.server_ms:.0%})"
    )
    console.print(f"torch in the web processes: {'yes' if has_torch else 'no'}")
    _pictures(console, plan, shown)


def _pictures(console: Console, plan: serving.Plan, shown: list[pictures.Pictures]) -> None:
    console.print(_serving_table(plan, [row for each in shown for row in (each.stored, each.served)]))
    for each in shown:
        more_ms = each.served.server_ms - each.stored.server_ms
        cpu_goal = met(each.alone_ms < PADDING_GOAL_MS, "under 1 ms")
        console.print(
            f"photographs of {each.size_px} px: {each.served_bytes / 1000:.0f} kB served, "
            f"{each.stored_bytes / 1000:.0f} kB stored ({each.served_bytes / each.stored_bytes:.2f} times, "
            f"the shortest {each.served_bytes / each.shortest_bytes:.1f}); "
            f"padding {each.alone_ms:.2f} ms of CPU {cpu_goal}; the server's CPU "
            f"{each.served.server_ms / each.stored.server_ms:.2f} times, {more_ms:+.2f} ms"
        )
    for drawing in pictures.drawings():
        console.print(
            f"drawn on {drawing.name}: picture {drawing.plain_ms:.0f} ms of CPU, "
            f"{drawing.plain_bytes / 1000:.0f} kB; explanation {drawing.explained_ms:.0f} ms, "
            f"{drawing.explained_bytes / 1000:.0f} kB"
        )


def _serving_table(plan: serving.Plan, measured: list[serving.Measured]) -> Table:
    processes = "1 process" if plan.workers == 1 else f"{plan.workers} processes"
    heads = (
        *("", "responses", "per s", "p50 ms", "p95 ms", "p99 ms"),
        *("server CPU ms", "database ms", "client ms"),
    )
    rows = [
        (
            row.name, row.count,
            *(f"{value:.0f}" for value in (row.rate, row.p50_ms, row.p95_ms, row.p99_ms)),
            *(f"{value:.2f}" for value in (row.server_ms, row.database_ms, row.client_ms)),
        )
        for row in measured
    ]  # fmt: skip
    title = (
        f"Serving: {plan.people} respondents at once, gunicorn with {processes}, PostgreSQL with "
        f"synchronous commit, {os.cpu_count()} cores shared with the client"
    )
    return table(title, heads, rows)


if __name__ == "__main__":
    sys.exit(main())
