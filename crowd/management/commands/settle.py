"""Pays what a study owes: shows the batch, and sends it only with --yes."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from crowd.ground import audit
from crowd.ground.amounts import amount_of
from crowd.ground.connections import service_of
from crowd.ground.locks import Held, exclusive
from crowd.models import Posting
from crowd.money.ledger import missing, send_again
from crowd.money.matching import Reconciled, awaited, unknown_until
from crowd.money.plan import Plan, plan_of, sums_of
from crowd.money.run import NotRead, catch_up
from crowd.money.sending import Outcome, settle
from crowd.platforms import PLATFORMS, has_service
from crowd.platforms.base import PlatformError, Unsupported
from experiments.management.base import StudyCommand, study_of
from experiments.models import Study
from experiments.terminal import Terminal

STATES = (
    ("due", "due"),
    ("sending", "being sent"),
    ("unknown", "unknown"),
    ("sent", "sent"),
    ("confirmed", "  seen on the platform's list"),
    ("failed", "failed"),
    ("withheld", "withheld"),
)
Sums = dict[str, tuple[int, int]]
SIMULATOR_S = 2.0
UNREACHABLE = (NotRead, PlatformError, Unsupported)


class Command(StudyCommand):
    help = (
        "Pay what a study owes on its platforms. Without --yes nothing is sent: the batch is shown. Whatever "
        "is interrupted is settled by the next run, by looking at the platform's list."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--platform", choices=[name for name in PLATFORMS if has_service(name)])
        parser.add_argument("--mode", choices=list(Posting.Mode.values))
        parser.add_argument("--pilot", action="store_true", help="only the pilot's posting")
        parser.add_argument("--yes", action="store_true", help="send the payments")
        parser.add_argument("--total", default="", help="the total, to confirm a large batch: 420.00")
        parser.add_argument("--by", default="", help="who pays, for the log; by default who is logged in")
        parser.add_argument(
            "--again", nargs="+", default=[], metavar="PARTICIPANT",
            help="make bonuses of these people due again that never arrived, as the platform told you; with "
            "--by and --reason",
        )  # fmt: skip
        parser.add_argument("--reason", default="", help="why, for --again; ledger and log keep it")

    def handle(
        self,
        *args: Any,
        slug: str,
        platform: str | None,
        mode: str | None,
        yes: bool,
        total: str,
        by: str,
        **options: Any,
    ) -> None:
        study = study_of(slug)
        postings = _chosen(study, platform, mode, options["pilot"])
        if (total or options["again"]) and len(postings) > 1:
            raise CommandError(
                f"{'--total' if total else '--again'} is for one posting, and {slug} has {len(postings)}. "
                "Choose one with --platform, --mode and --pilot."
            )
        again = _again(options["again"], by, options["reason"])
        busy = f"Another settle of this study is running ({slug}). Wait until it has ended."
        troubles: list[str] = []
        with Terminal() as terminal, exclusive(f"settle-{slug}", busy) as held:
            for posting in postings:
                try:
                    settling = _Settling(posting, terminal, held, by or audit.at_the_terminal(), again)
                    troubles += settling.run(yes, total)
                except UNREACHABLE as error:
                    troubles.append(_later(posting, error))
        if troubles:
            raise CommandError(" ".join(dict.fromkeys(troubles)))


@dataclass(frozen=True, slots=True)
class Again:
    """The participants whose bonuses become due again, by the first 8 characters of their names, and why."""

    names: frozenset[str] = frozenset()
    reason: str = ""


def _again(names: Sequence[str], by: str, reason: str) -> Again:
    if names and not (by.strip() and reason.strip()):
        raise CommandError(
            "--again needs --by, your name, and --reason: if the payment arrives after all, a second one "
            "cannot be taken back. Nothing was sent."
        )
    return Again(frozenset(name.lower()[:8] for name in names), reason)


def _later(posting: Posting, error: object) -> str:
    said = str(error)
    named = said if said.startswith(posting.platform) else f"{posting.platform}: {said}"
    return f"{named} Nothing is lost; run settle again later."


def _chosen(study: Study, platform: str | None, mode: str | None, pilot: bool) -> list[Posting]:
    rows = Posting.objects.filter(study=study).exclude(external_id="").select_related("study").order_by("pk")
    rows = rows.filter(platform=platform) if platform else rows
    rows = rows.filter(mode=mode) if mode else rows
    rows = rows.filter(pilot=True) if pilot else rows
    postings = [posting for posting in rows if has_service(posting.platform)]
    if postings:
        postings = _still_there(study, postings)
    if not postings:
        which = " ".join(word for word in (platform, mode) if word)
        raise CommandError(
            f"{study.slug} has no {which + ' ' if which else ''}posting on a platform that pays. "
            f"Offer it first: publish {study.slug} --platform NAME"
        )
    return postings


def _still_there(study: Study, postings: Sequence[Posting]) -> list[Posting]:
    """The postings that can still be asked: the simulator of a closed rehearsal may have been stopped."""
    reachable = [posting for posting in postings if not _is_gone(posting)]
    if not reachable:
        raise CommandError(
            f"{study.slug} has only been rehearsed, and the simulator is gone: there is nothing to pay."
        )
    return reachable


def _is_gone(posting: Posting) -> bool:
    if posting.mode != Posting.Mode.REHEARSAL or posting.state != Posting.State.CLOSED:
        return False
    address = urlsplit(posting.site)
    try:
        with socket.create_connection((address.hostname or "", address.port or 80), SIMULATOR_S):
            return False
    except OSError:
        return True


class _Settling:
    """The settling of one posting, from reading the platform's list to the table at the end."""

    def __init__(self, posting: Posting, terminal: Terminal, held: Held, by: str, again: Again) -> None:
        self.posting, self.terminal, self.held, self.by = posting, terminal, held, by
        self.again = again
        self.service = service_of(posting)

    def run(self, yes: bool, total: str) -> list[str]:
        """Settles the posting. Returns the sentences that say why the run was not a success."""
        posting, terminal = self.posting, self.terminal
        # Without --yes nothing may change on the platform: only a run that pays offers replacements.
        result = catch_up(posting, self.service, replace=yes)
        if self.again.names:
            self._make_due_again()
            result = catch_up(posting, self.service, replace=yes)
        _show_result(terminal, result)
        before, plan = sums_of(posting), plan_of(posting)
        _show_plan(terminal, posting, plan)
        if not yes:
            _show_sums(terminal, posting, [("payouts", before)])
            if plan.payables:
                terminal.line(f"Nothing was sent. To pay {plan.total}: settle {posting.study.slug} --yes")
            return [*result.troubles, *self._unknown()]
        outcome, troubles = Outcome(), list(result.troubles)
        if plan.payables:
            _confirm(plan, total)
            outcome = settle(posting, plan, self.by, held=self.held, service=self.service)
            try:
                troubles += self._look_again()
            except UNREACHABLE as error:
                troubles.append(_later(posting, error))
        _show_sums(terminal, posting, [("before", before), ("after", sums_of(posting))])
        if outcome.fees_cents:
            terminal.line(f"Fees of the platform for bonuses: {amount_of(outcome.fees_cents, plan.currency)}")
        return [*self._troubles(outcome), *troubles]

    def _make_due_again(self) -> None:
        """Makes the bonuses of the named participants due again; if one name is wrong, changes nothing."""
        lost = missing(self.posting).select_related("session__participant")
        rows = {row.pk: str(row.session.participant.pseudonym)[:8] for row in lost}
        strangers = self.again.names - set(rows.values())
        if strangers:
            raise CommandError(
                f"{', '.join(sorted(strangers))}: no bonus of theirs is missing on {self.posting.platform}. "
                "Only one that was sent, and that its list does not show after the waiting time, can be made "
                "due again. Nothing was sent."
            )
        count = send_again(
            [pk for pk, name in rows.items() if name in self.again.names], self.by, self.again.reason
        )
        self.terminal.line(f"Made due again by {self.by}: {count} payout{'s' if count != 1 else ''}.")

    def _look_again(self) -> list[str]:
        """Reads the platform's list again, to confirm what was just sent."""
        result = catch_up(self.posting, self.service)
        _show_result(self.terminal, result)
        if not result.due_again:
            return result.troubles
        return [
            *result.troubles,
            f"{result.due_again} did not reach {self.posting.platform} and are due again. Run settle again.",
        ]

    def _troubles(self, outcome: Outcome) -> list[str]:
        if outcome.stopped:
            return [_later(self.posting, outcome.stopped), *self._unknown()]
        problems = [f"{count} not paid: {why}" for why, count in outcome.problems.items()]
        return [*problems, *self._unknown()]

    def _unknown(self) -> list[str]:
        until = unknown_until(self.posting)
        if until is None:
            return []
        amounts = list(awaited(self.posting).values_list("cents", flat=True))
        count, cents = len(amounts), sum(amounts)
        return [
            f"{count} payout{'s' if count != 1 else ''} ({amount_of(cents, self.posting.currency)}) on "
            f"{self.posting.platform} may or may not have been paid. Run settle again after "
            f"{until:%Y-%m-%d %H:%M:%S} UTC: then the platform's list decides."
        ]


def _confirm(plan: Plan, total: str) -> None:
    """Raises CommandError unless the total of a large batch was typed or given with --total."""
    if plan.total_cents <= settings.SETTLE_CONFIRM_CENTS and not total:
        return
    wanted = f"{plan.total_cents // 100}.{plan.total_cents % 100:02d}"
    given = total or _typed(f"This pays {plan.total}. Type {wanted} to confirm: ")
    if given.strip().removesuffix(plan.currency).strip() != wanted:
        raise CommandError(
            f"The total is {wanted} {plan.currency}, not {given.strip()[:40] or 'nothing'!r}: nothing was "
            f"sent. Look at the batch, then give --total {wanted}"
        )


def _typed(question: str) -> str:
    try:
        return input(question)
    except EOFError:
        return ""


def _show_result(terminal: Terminal, result: Reconciled) -> None:
    lines = (
        ("Cut off in an earlier run, to be found on the platform's list", result.recovered),
        ("Newly due", result.decided),
        ("Of unknown outcome, and found paid", result.paid),
        ("Not on the platform's list, so due again", result.due_again),
        ("Paid by the platform itself, or on its page", result.adopted),
        ("No longer to be approved, so compensated instead", result.moved),
        ("Seen on the platform's list", result.confirmed),
    )
    for what, count in lines:
        if count:
            terminal.line(f"{what}: {count} payout{'s' if count != 1 else ''}.")
    for note in result.notes:
        terminal.line(note)


def _show_plan(terminal: Terminal, posting: Posting, plan: Plan) -> None:
    names = {"base": "reward", "screen_out": "screened out", "compensation": "compensation", "bonus": "bonus"}
    ways = {"approve": "approve", "bonus": "bonus payment"}
    title = f"{posting.study.slug} on {posting.platform} ({posting.mode}{', pilot' if posting.pilot else ''})"
    rows: list[tuple[object, ...]] = [
        (names[kind], ways[way], count, _plain(cents)) for kind, way, count, cents in plan.lines()
    ]
    if rows:
        rows.append(("together", f"{plan.people} people", len(plan.payables), _plain(plan.total_cents)))
        terminal.table(title, ("To pay", "How", "Payouts", f"{plan.currency}, without fees"), rows)
    else:
        terminal.line(f"{title}: nothing can be paid now.")
    terminal.line(
        f"Paid so far {amount_of(plan.spent_cents, plan.currency)} of at most "
        f"{amount_of(plan.cap_cents, plan.currency)}."
    )
    for waiting in plan.waiting:
        some = ", ".join(waiting.names[:5]) + (", …" if len(waiting.names) > 5 else "")
        terminal.line(
            f"Waiting: {waiting.payouts} ({amount_of(waiting.cents, plan.currency)}; {some}). {waiting.why}"
        )


def _show_sums(terminal: Terminal, posting: Posting, columns: list[tuple[str, Sums]]) -> None:
    rows: list[tuple[object, ...]] = []
    for state, word in STATES:
        cells: list[object] = [word]
        for _, sums in columns:
            count, cents = sums.get(state, (0, 0))
            cells += [count, _plain(cents)]
        rows.append(tuple(cells))
    headings = ["Payouts", *(head for name, _ in columns for head in (name, posting.currency))]
    terminal.table("The ledger", headings, rows)


def _plain(cents: int) -> str:
    return f"{cents // 100:,}.{cents % 100:02d}".rjust(9)
