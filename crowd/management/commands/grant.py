"""Grants one person an amount that no policy foresees."""

from __future__ import annotations

from typing import Any, Literal

from django.core.management.base import CommandError, CommandParser

from crowd.ground.amounts import amount_of, cents_of
from crowd.money.ledger import grant
from crowd.people.submission_actions import GRANTS, submission_named
from experiments.management.base import StudyCommand, study_of


class Command(StudyCommand):
    help = "Owe one person an extra amount, in your name. It is due then, and settle sends it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("participant", help="the name that pages and terminal show, or a part of it")
        parser.add_argument("amount", help="as 1.50, in the study's currency")
        parser.add_argument("--kind", choices=list(GRANTS), default="compensation")
        parser.add_argument("--by", required=True, help="your name here: the decision is yours")
        parser.add_argument("--reason", required=True, help="kept with the payout and in the log")

    def handle(
        self,
        *args: Any,
        slug: str,
        participant: str,
        amount: str,
        kind: Literal["bonus", "compensation"],
        by: str,
        reason: str,
        **options: Any,
    ) -> None:
        row = submission_named(study_of(slug), participant)
        if row.session is None:
            raise CommandError(
                "They never came: their submission can be approved, which pays the reward "
                f"(decide {slug} approve), or they can be paid on the platform's own page."
            )
        payout = grant(row.session, kind, cents_of(amount, row.posting.currency), by, reason)
        self.stdout.write(
            f"{amount_of(payout.cents, payout.currency)} are due to {participant} as {kind}. "
            f"settle {slug} sends them."
        )
