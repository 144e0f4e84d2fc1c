"""`python -m benchmarks`: measured, never asserted, on servers of its own on this machine."""

from __future__ import annotations

import argparse
import os
import sys

from rich.console import Console
from rich.table import Table

from benchmarks.serving import LATER, Measured, Plan, measure

SHARE_GOAL, CPU_GOAL_MS = 0.6, 2.0


def main() -> int:
    usual = Plan()
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measures Legible on this machine."
    )
    parser.add_argument("--people", type=int, default=usual.people, help="respondents at once (200)")
    parser.add_argument("--rounds", type=int, default=usual.rounds, help="measured rounds of each kind (3)")
    parser.add_argument(
        "--answers", type=int, default=usual.answers, help="answers of a person per round (20)"
    )
    parser.add_argument("--workers", type=int, default=usual.workers, help="processes of the web server (1)")
    asked = parser.parse_args()
    plan = Plan(asked.people, asked.rounds, asked.answers, asked.workers)
    if min(plan.people, plan.rounds, plan.answers, plan.workers) < 1:
        parser.error("each number must be at least 1")
    console = Console(width=120)
    measured, has_torch = measure(plan)
    console.print(_table(plan, measured))
    bare, ours, first, last = measured
    share = ours.rate / bare.rate
    console.print(f"rate beside the bare view: {share:.0%} {_met(share >= SHARE_GOAL, 'at least 60 %')}")
    cpu_goal = _met(ours.server_ms <= CPU_GOAL_MS, "at most 2 ms")
    console.print(f"server CPU per response: {ours.server_ms:.2f} ms {cpu_goal}")
    console.print(
        f"CPU of response {LATER} beside response 1: {last.server_ms:.2f} against {first.server_ms:.2f} ms "
        f"({last.server_ms / first.server_ms:.0%})"
    )
    console.print(f"torch in the web processes: {'yes' if has_torch else 'no'}")
    return 0


def _met(is_met: bool, goal: str) -> str:
    return f"(goal {goal}: {'met' if is_met else 'missed'})"


def _table(plan: Plan, measured: list[Measured]) -> Table:
    processes = "1 process" if plan.workers == 1 else f"{plan.workers} processes"
    table = Table(
        title=f"Serving: {plan.people} respondents at once, gunicorn with {processes}, PostgreSQL with "
        f"synchronous commit, {os.cpu_count()} cores shared with the client"
    )
    for head in (
        "",
        "responses",
        "per s",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "server CPU ms",
        "database ms",
        "client ms",
    ):
        table.add_column(head, justify="left" if not head else "right")
    for row in measured:
        table.add_row(
            row.name, f"{row.count}", f"{row.rate:.0f}",
            *(f"{value:.0f}" for value in (row.p50_ms, row.p95_ms, row.p99_ms)),
            *(f"{value:.2f}" for value in (row.server_ms, row.database_ms, row.client_ms)),
        )  # fmt: skip
    return table


if __name__ == "__main__":
    sys.exit(main())
