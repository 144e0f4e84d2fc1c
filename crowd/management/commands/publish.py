"""Offers an open study on a platform: shows what will be there and what it costs at most, then asks."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management.base import CommandError, CommandParser

from crowd.ground.amounts import amount_of, cents_of, is_typed
from crowd.ground.audit import at_the_terminal
from crowd.models import Posting
from crowd.money.expense_cap import change_cap
from crowd.money.run import look
from crowd.people.result_seals import printed_name
from crowd.platforms import HERE, PLATFORMS, has_service, traits_of
from crowd.platforms.base import Mode, PlatformError, Quote, UnsupportedRequest
from crowd.recruiting import publishing
from crowd.recruiting.places import add_places, ensure_pilot, places_text, room
from crowd.study_check.publication_quote import address_of, adopt_recruiting, hourly_cents, quote_of
from crowd.study_check.quality_record import acknowledge_as
from experiments.drafting.stimulus_warnings import open_warnings, stimuli_sentences
from experiments.management.base import StudyCommand, study_of
from experiments.models import Slot, Study
from experiments.selectors import definition_of
from experiments.study_files.load import find_study, load_study
from experiments.terminal import Terminal

EMPTY: tuple[object, ...] = ("", [], None)
CHANGES = ("add", "pause", "resume", "close", "sync")


class Command(StudyCommand):
    help = "Offer an open study on a platform, or change what is offered. Repeating it changes nothing."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", help="a slug, or a study.toml whose [recruitment] and [platforms] count")
        parser.add_argument("--platform", choices=list(PLATFORMS), default=HERE)
        mode = parser.add_mutually_exclusive_group()
        mode.add_argument("--live", action="store_true", help="for people, with real money")
        mode.add_argument("--sandbox", action="store_true", help="the platform's own sandbox")
        mode.add_argument("--rehearse", action="store_true", help="a whole study with simulated people")
        mode.add_argument("--simulator", metavar="URL", default="", help="on a running simulate_platform")
        parser.add_argument(
            "--pilot", nargs="?", type=int, const=0, help="so many places of the pilot's own slots"
        )
        parser.add_argument("--places", type=int, help="how many places to offer (every free slot)")
        parser.add_argument("--cap", metavar="AMOUNT", help="the most it may cost (the total shown)")
        parser.add_argument("--total", metavar="AMOUNT", help="the sum, instead of typing it")
        parser.add_argument("--by", default="", help="your name, for the study's log")
        parser.add_argument(
            "--acknowledge", metavar="NAME", default="", help="who knows the warnings about the stimuli"
        )
        parser.add_argument("--reason", default="", help="why the cap changes, or why you go on all the same")
        change = parser.add_mutually_exclusive_group()
        change.add_argument("--add", type=int, metavar="N", help="offer N places more")
        change.add_argument("--pause", action="store_true", help="no new person may come")
        change.add_argument("--resume", action="store_true", help="people may come again")
        change.add_argument("--close", action="store_true", help="end it, and verify that it has ended")
        change.add_argument("--sync", action="store_true", help="read the platform's list now")
        parser.add_argument("--people", type=int, help="simulated people of a rehearsal (as many as slots)")
        parser.add_argument("--seed", type=int, default=1, help="draws them (1)")
        parser.add_argument("--faults", type=float, default=0.05, help="share of calls that fail (0.05)")
        parser.add_argument(
            "--port", type=int, default=8000, help="where a rehearsal serves the study (8000)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        options["by"] = options["by"] or at_the_terminal()
        try:
            study = self._study(options["study"])
            if options["acknowledge"]:
                self._acknowledge(study, options)
            self._handle(study, options)
        except (UnsupportedRequest, PlatformError) as error:
            raise CommandError(str(error)) from error

    def _study(self, name: str) -> Study:
        path = Path(name)
        if path.suffix != ".toml" and not (path.is_dir() and len(path.parts) > 1):
            return study_of(name)
        definition = load_study(find_study(name, tuple(settings.STUDY_DIRS)))
        study = study_of(definition.slug)
        adopt_recruiting(study, definition)
        return study

    def _acknowledge(self, study: Study, options: dict[str, Any]) -> None:
        if not open_warnings(study):
            self.stdout.write("No warning about the stimuli awaits an acknowledgement.")
            return
        name = options["acknowledge"]
        user = User.objects.filter(username=name).first()
        count = acknowledge_as(study, options["by"], printed_name(user) if user else name, options["reason"])
        self.stdout.write(f"{count} warnings about the stimuli are acknowledged; every report says so.")

    def _handle(self, study: Study, options: dict[str, Any]) -> None:
        platform = options["platform"]
        if any(options[name] for name in CHANGES) or options["add"] is not None:
            self._change(study, options)
        elif not has_service(platform):
            self._post_by_hand(study, options)
        elif options["rehearse"]:
            self._rehearse(study, options)
        else:
            self._publish(study, options)

    def _post_by_hand(self, study: Study, options: dict[str, Any]) -> None:
        platform, slug = options["platform"], study.slug
        if options["sandbox"] or options["rehearse"] or options["simulator"]:
            raise CommandError(f"{platform} has no sandbox and no simulator: leave that out, then go --live.")
        pilot = options["pilot"] is not None
        if options["pilot"]:
            ensure_pilot(study, options["pilot"], _silent)
        posting, freed = publishing.post_by_hand(
            study, platform, live=options["live"], pilot=pilot, by=options["by"]
        )
        plain = traits_of(platform).is_ours and not pilot
        address = f"{settings.BASE_URL}/join/{slug}/" if plain else address_of(posting)
        if not posting.live:
            self.stdout.write(
                f"{slug} is offered on {platform}, for rehearsal until it is published --live: {address}"
            )
            return
        self.stdout.write(
            f"{slug} is live on {platform}: {address} ({freed} places of simulated people are free again)"
        )

    def _rehearse(self, study: Study, options: dict[str, Any]) -> None:
        if options["pilot"] is not None:
            raise CommandError(
                "A rehearsal takes the study's own slots and frees them again: leave out --pilot."
            )
        publishing.check_study(study, options["platform"], "rehearsal")
        # Imported here: it brings simulators and browsers along, which no other posting needs.
        from crowd.rehearsal.rehearsing import rehearse

        with Terminal() as terminal:
            rehearse(
                study,
                options["platform"],
                terminal,
                people=options["people"] or Slot.objects.filter(study=study, pilot=False).count(),
                seed=options["seed"],
                faults=options["faults"],
                port=options["port"],
            )

    def _publish(self, study: Study, options: dict[str, Any]) -> None:
        platform, mode, site = options["platform"], _mode(options), options["simulator"].rstrip("/")
        pilot = options["pilot"] is not None
        publishing.check_study(study, platform, mode, pilot=pilot)
        if not site and not settings.SECURE:
            raise CommandError(
                f"People on {platform} cannot reach {settings.BASE_URL}. Serve the study by https, and set "
                "BASE_URL to that address."
            )
        places = options["pilot"] or options["places"]
        if pilot and publishing.posting_of(study, platform, mode, pilot) is None:
            if not places:
                raise CommandError("Say how many places the pilot has: --pilot N.")
            ensure_pilot(study, places, _silent, before=mode)
        cap = cents_of(options["cap"], definition_of(study).reward.currency) if options["cap"] else None
        posting = publishing.plan_posting(
            study, platform, mode, pilot=pilot, places=places, cap_cents=cap, site=site
        )
        if posting.state != Posting.State.DRAFT:
            self._again(posting, cap, options)
            return
        quote = quote_of(posting)
        self._show(posting, quote)
        posting.cap_cents = self._choose_cap(posting.cap_cents, quote)
        self._confirm(posting, posting.cap_cents, options["total"])
        posting = publishing.open_posting(publishing.commit(posting, options["by"]), options["by"])
        self._say_state(posting)

    def _again(self, posting: Posting, cap: int | None, options: dict[str, Any]) -> None:
        """The posting exists already: what an earlier call left undone is finished; a new cap is taken."""
        if cap is not None and cap != posting.cap_cents:
            self._confirm(posting, cap, options["total"])
            change_cap(posting, cap, options["by"], options["reason"])
        self.stdout.write("It is there already; only what was left undone is done.")
        self._say_state(publishing.open_posting(posting, options["by"]))

    def _show(self, posting: Posting, quote: Quote, more: int = 0) -> None:
        definition, currency = definition_of(posting.study), posting.currency
        for sentence in stimuli_sentences(posting.study):
            self.stdout.write(sentence)
        floor = settings.HOURLY_FLOOR_CENTS.get(currency, 0)
        total = posting.places + more
        self._lines(
            f"{posting.study.slug}: {places_text(posting)}",
            ("title", definition.title),
            ("address", address_of(posting)),
            ("places", f"{total}, {more} of them new" if more else f"{total}"),
            ("reward", f"{amount_of(posting.reward_cents, currency)} for "
                       f"{definition.reward.expected_minutes:g} minutes"),
            ("per hour", f"{amount_of(hourly_cents(definition), currency)} (floor "
                         f"{amount_of(floor, currency)})"),
            *((f"code {outcome}", code) for outcome, code in posting.codes.items()),
            *((name, _compact(value)) for name, value in posting.options.items() if value not in EMPTY),
        )  # fmt: skip
        self._lines(
            "Cost at most",
            *((label, amount_of(cents, quote.currency)) for label, cents in quote.lines),
            ("Total", amount_of(quote.total_cents, quote.currency)),
        )
        for note in quote.notes:
            self.stdout.write(f"  {note}")
        if quote.balance_cents is not None:
            held = amount_of(quote.balance_cents, quote.currency)
            short = quote.total_cents - quote.balance_cents
            missing = f"; {amount_of(short, quote.currency)} are missing" if short > 0 else ""
            self.stdout.write(f"  The account holds {held}{missing}.")

    def _lines(self, title: str, *rows: tuple[str, str]) -> None:
        width = max(len(name) for name, _ in rows) + 2
        self.stdout.write(title)
        for name, value in rows:
            self.stdout.write(f"  {name:<{width}}{value}")

    def _choose_cap(self, cap_cents: int, quote: Quote) -> int:
        """The most that it may cost: the total, or a higher cap, up to which people are replaced."""
        if cap_cents and cap_cents < quote.total_cents:
            raise CommandError(
                f"--cap {amount_of(cap_cents, quote.currency)} is less than the total of "
                f"{amount_of(quote.total_cents, quote.currency)}. Raise it, or offer fewer places."
            )
        cap = cap_cents or quote.total_cents
        self.stdout.write(
            f"  Cap: {amount_of(cap, quote.currency)}. Until then, people who use a place and do not "
            "count are replaced."
        )
        return cap

    def _confirm(self, posting: Posting, cents: int, given: str | None) -> None:
        """If money moves, also in a rehearsal, the sum must be typed exactly."""
        if posting.mode == Posting.Mode.SANDBOX:
            return
        if given is None:
            self.stdout.write(f"Type the sum of {amount_of(cents, posting.currency)} to go on: ", ending="")
            self.stdout.flush()
            given = sys.stdin.readline()
        if not given.strip():
            raise CommandError("Nothing was sent. To do it without being asked, give the sum: --total.")
        if not is_typed(given, cents, posting.currency):
            raise CommandError(
                f"Nothing was sent: {given.strip()[:40]!r} is not {amount_of(cents, posting.currency)}."
            )

    def _say_state(self, posting: Posting) -> None:
        page = posting.address or "no page of its own"
        self.stdout.write(
            f"{posting.study.slug} is {posting.state} on {posting.platform} ({posting.mode}) with "
            f"{posting.places} places, {posting.taken} taken: {page}"
        )
        pilot = " --pilot" if posting.pilot else ""
        how = {"live": "--live", "sandbox": "--sandbox"}.get(posting.mode, f"--simulator {posting.site}")
        same = f"publish {posting.study.slug} --platform {posting.platform} {how}{pilot}"
        for what, line in (
            ("more places", f"{same} --add N"),
            ("pause", f"{same} --pause"),
            ("close", f"{same} --close"),
            ("read its list", f"{same} --sync"),
            ("pay", f"settle {posting.study.slug}"),
        ):
            self.stdout.write(f"  {what:<15}{line}")

    def _change(self, study: Study, options: dict[str, Any]) -> None:
        posting, by = self._find_posting(study, options), options["by"]
        if options["sync"]:
            self._sync(posting)
            return
        if options["add"] is not None:
            self._add(posting, options)
        else:
            verb = next(name for name in ("pause", "resume", "close") if options[name])
            getattr(publishing, verb)(posting, by)
        if has_service(posting.platform):
            self._say_state(posting)
        else:
            self.stdout.write(f"{study.slug} is {posting.state} on {posting.platform}.")

    def _find_posting(self, study: Study, options: dict[str, Any]) -> Posting:
        """The posting that is meant; if there are several, it must be named."""
        rows = Posting.objects.filter(study=study, platform=options["platform"]).select_related("study")
        if not options["sync"]:
            rows = rows.exclude(state=Posting.State.CLOSED)
        if options["live"] or options["sandbox"] or options["rehearse"] or options["simulator"]:
            rows = rows.filter(mode=_mode(options))
        if options["pilot"] is not None:
            rows = rows.filter(pilot=True)
        elif rows.filter(pilot=False).exists():
            rows = rows.filter(pilot=False)
        postings = list(rows.order_by("-id"))
        if not postings:
            raise CommandError(f"{study.slug} has no such posting on {options['platform']} that is open.")
        if len({posting.mode for posting in postings}) > 1:
            modes = ", ".join(sorted({posting.mode for posting in postings}))
            raise CommandError(
                f"There are postings of several modes ({modes}). Say which: --live, --sandbox."
            )
        return postings[0]

    def _add(self, posting: Posting, options: dict[str, Any]) -> None:
        count = options["add"]
        if posting.pilot and count > 0:
            ensure_pilot(posting.study, count, _silent)
        if has_service(posting.platform) and 0 < count <= room(posting.study, posting.pilot):
            quote = quote_of(posting, posting.places + count)
            self._show(posting, quote, count)
            self._confirm(posting, quote.total_cents, options["total"])
        add_places(posting, count, options["by"])

    def _sync(self, posting: Posting) -> None:
        synced = look(posting, everything=True)
        if synced.error:
            raise CommandError(synced.error)
        for change in synced.changes or ("Nothing has changed.",):
            self.stdout.write(change)
        posting.refresh_from_db()
        counts = ", ".join(f"{count} {state}" for state, count in sorted(synced.counts.items())) or "none"
        self.stdout.write(f"{posting.platform} is {posting.state}; submissions: {counts}.")


def _mode(options: dict[str, Any]) -> Mode:
    if options["live"]:
        return "live"
    if options["sandbox"]:
        return "sandbox"
    if options["rehearse"] or options["simulator"]:
        return "rehearsal"
    raise CommandError(
        "Say how real it is: --rehearse first (simulated people and money), then --live"
        f"{' or --sandbox' if 'sandbox' in traits_of(options['platform']).modes else ''}."
    )


def _silent(what: str, done: int, total: int) -> None:
    """Planning a pilot takes only a moment."""


def _compact(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
