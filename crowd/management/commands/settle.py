"""Pays what a study owes: shows the batch, and sends it only with --yes."""

from __future__ import annotations

import math
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.db import transaction

from crowd.ground import audit
from crowd.ground.amounts import amount_of, is_typed
from crowd.ground.process_locks import exclusive
from crowd.models import Payout, Posting, Submission
from crowd.money.manual_decisions import accept, accept_reward, pay_by_hand, send_again
from crowd.money.needs_hand import Hand, in_brief
from crowd.money.plan import Plan
from crowd.money.platform_statement import name_in_sentence
from crowd.money.reconciling import Reconciliation
from crowd.money.run import NotRead, Ran, Sums, run
from crowd.money.totals import books_of, write_books
from crowd.people.result_seals import concealing, seals
from crowd.people.submission_actions import submission_named
from crowd.platforms import PLATFORMS, has_service
from crowd.platforms.base import PlatformError, UnsupportedRequest
from experiments.management.base import StudyCommand, study_of
from experiments.models import Session, Study
from experiments.terminal import Terminal

STATES = (
    ("due", "due"),
    ("sending", "being sent"),
    ("unknown", "unknown"),
    ("sent", "sent"),
    ("confirmed", "  seen on the platform's statement"),
    ("failed", "failed"),
    ("withheld", "withheld"),
    ("by_hand", "paid by hand"),
)
SIMULATOR_S = 2.0
UNREACHABLE = (NotRead, PlatformError, UnsupportedRequest)


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
        for flag, text in (
            ("--again", "payments to these people never arrived, as the platform told you: send them again"),
            ("--accept", "what the platform shows for these people is right: the ledger follows it"),
            ("--by-hand", "what is due to these people was paid outside of the platform"),
        ):
            parser.add_argument(flag, nargs="+", default=[], metavar="PARTICIPANT", help=text)
        parser.add_argument(
            "--accept-reward",
            action="store_true",
            help="the reward that the platform shows now is to be paid, though another one was offered",
        )
        parser.add_argument(
            "--reason", default="", help="why, for --again, --accept and --accept-reward; the log keeps it"
        )
        parser.add_argument(
            "--receipt", default="", help="how it was paid and where the proof is, for --by-hand"
        )
        parser.add_argument(
            "--csv", default="", metavar="FILE", help="write every payment and fee into this file"
        )

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
        postings = _find_postings(study, platform, mode, options["pilot"])
        acts = Acts.of(options, by)
        for flag, given in (("--total", total), (acts.flag, acts.flag)):
            if given and len(postings) > 1:
                raise CommandError(
                    f"{flag} is for one posting, and {slug} has {len(postings)}. Choose one with --platform, "
                    "--mode and --pilot."
                )
        busy = f"Another settle of this study is running ({slug}). Wait until it has ended."
        troubles: list[str] = []
        with Terminal() as terminal, exclusive(f"settle-{slug}", busy) as held:
            for posting in postings:
                who = by or audit.at_the_terminal()
                try:
                    ran = run(
                        posting,
                        who,
                        held=held,
                        confirm=partial(_confirm, total=total) if yes else None,
                        first=partial(acts.carry_out, posting, terminal) if acts.flag else None,
                    )
                except UNREACHABLE as error:
                    troubles.append(_later(posting, error))
                    continue
                _show(terminal, posting, ran, yes)
                troubles += ran.troubles
        if options["csv"]:
            write_books(study, Path(options["csv"]), concealing(study, seals(study, Session.Origin.values)))
        if troubles:
            raise CommandError(" ".join(dict.fromkeys(troubles)))


@dataclass(frozen=True, slots=True)
class Acts:
    """What a named person decides about some participants before anything is sent: `flag` says what, `text`
    is the reason or the receipt."""

    flag: str = ""
    names: tuple[str, ...] = ()
    who: str = ""
    text: str = ""

    @classmethod
    def of(cls, options: Mapping[str, Any], who: str) -> Acts:
        flags = {"--again": "reason", "--accept": "reason", "--by-hand": "receipt"}
        flags["--accept-reward"] = "reason"
        given = [flag for flag in flags if options[flag.strip("-").replace("-", "_")]]
        if len(given) > 1:
            raise CommandError(f"{' and '.join(given)} are different decisions: give one at a time.")
        if not given:
            return cls()
        (flag,) = given
        text = str(options[flags[flag]])
        if not who.strip() or not text.strip():
            raise CommandError(
                f"{flag} needs --by, your name, and --{flags[flag]}: the log keeps both. Nothing was sent."
            )
        names = () if flag == "--accept-reward" else options[flag.strip("-").replace("-", "_")]
        return cls(flag, tuple(names), who, text)

    def carry_out(self, posting: Posting, terminal: Terminal) -> None:
        """All of them or, if one cannot be done, none."""
        if self.flag == "--accept-reward":
            count = accept_reward(posting, self.who, self.text)
            reward = amount_of(posting.accepted_cents or 0, posting.currency)
            terminal.line(f"Accepted by {self.who}: a reward of {reward}, now due to {count} people.")
        with transaction.atomic():
            for name in self.names:
                row = submission_named(posting.study, name)
                if row.posting_id != posting.pk:
                    raise CommandError(f"{name} did not come by this posting. Nothing was sent.")
                terminal.line(self._one(row))

    def _one(self, row: Submission) -> str:
        if self.flag == "--again":
            count = send_again(row, self.who, self.text)
            payouts = f"{count} payout{'s' if count != 1 else ''}"
            return f"Made due again by {self.who}: {payouts} of {name_in_sentence(row)}."
        if self.flag == "--accept":
            accept(row, self.who, self.text)
            return f"Accepted by {self.who}: the platform's statement of {name_in_sentence(row)}."
        due = list(Payout.objects.filter(submission=row, state=Payout.State.DUE))
        if not due:
            raise CommandError(f"Nothing is due to {name_in_sentence(row)}, so nothing was paid by hand.")
        for payout in due:
            pay_by_hand(payout, self.who, self.text)
        total = amount_of(sum(payout.cents for payout in due), due[0].currency)
        return f"Written down by {self.who}: {total} was paid to {name_in_sentence(row)} by hand."


def _later(posting: Posting, error: object) -> str:
    said = str(error)
    named = said if said.startswith(posting.platform) else f"{posting.platform}: {said}"
    return f"{named} Nothing is lost; run settle again later."


def _find_postings(study: Study, platform: str | None, mode: str | None, pilot: bool) -> list[Posting]:
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


def _confirm(plan: Plan, total: str) -> None:
    """Raises CommandError unless the total of a large batch was typed or given with --total."""
    if not plan.payables or (plan.total_cents <= settings.SETTLE_CONFIRM_CENTS and not total):
        return
    wanted = amount_of(plan.total_cents)
    fees = amount_of(plan.fees_cents, plan.currency)
    given = total or _read_answer(f"This pays {plan.total}, and about {fees} of "
                            f"fees. Type {wanted} to confirm: ")  # fmt: skip
    if not is_typed(given, plan.total_cents, plan.currency):
        raise CommandError(
            f"The total is {wanted} {plan.currency}, not {given.strip()[:40] or 'nothing'!r}: nothing was "
            f"sent. Look at the batch, then give --total {wanted}"
        )


def _show(terminal: Terminal, posting: Posting, ran: Ran, yes: bool) -> None:
    """What was learned, what is planned or done, the ledger, and what is left for a person to do."""
    _show_result(terminal, ran.result)
    _show_plan(terminal, posting, ran.plan)
    if ran.again is not None:
        _show_result(terminal, ran.again)
    if ran.after is None:
        _show_sums(terminal, posting, [("payouts", ran.before)])
        if ran.plan.payables:
            terminal.line(f"Nothing was sent. To pay {ran.plan.total}: settle {posting.study.slug} --yes")
    else:
        _show_sums(terminal, posting, [("before", ran.before), ("after", ran.after)])
        if ran.outcome.fees:
            fees = amount_of(math.ceil(ran.outcome.fees), ran.plan.currency)
            terminal.line(f"Fees of the platform for bonuses: {fees}")
    _show_books(terminal, posting)
    _show_hands(terminal, posting, ran.hands)


def _show_books(terminal: Terminal, posting: Posting) -> None:
    books = books_of([posting])
    terminal.table(
        "The money",
        ("", posting.currency),
        [(word, _plain(cents)) for word, cents in books.lines()],
    )


def _show_hands(terminal: Terminal, posting: Posting, hands: Sequence[Hand]) -> None:
    terminal.line(in_brief(posting, hands))
    for hand in hands:
        amount = "" if hand.cents is None else f", {amount_of(hand.cents, hand.currency)}"
        terminal.line(f"  {hand.who}{amount}: {hand.why} {hand.remedy}")
        terminal.line(f"    {hand.command}")


def _read_answer(question: str) -> str:
    try:
        return input(question)
    except EOFError:
        return ""


def _show_result(terminal: Terminal, result: Reconciliation) -> None:
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
