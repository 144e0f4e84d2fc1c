"""The money page: one bar, the next batch, what waits and why, and the ledger row by row."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils import timezone

from crowd.dashboard.access import reason_field, refusals, researcher_of, study_act, study_form, study_page
from crowd.dashboard.layout import attachment, choices, page_of, study_response
from crowd.dashboard.rows.ledger import (
    MODES,
    hourly_of,
    modes_of,
    needs_hand,
    payouts_of,
    person_of,
    spending_of,
)
from crowd.dashboard.rows.pay_due import money_of
from crowd.dashboard.rows.payment_batches import PayablePosting, batch_of, batches_of
from crowd.dashboard.rows.places_and_exclusions import ORIGIN_WORDS, places_of
from crowd.dashboard.rows.postings import title_of
from crowd.dashboard.rows.sessions import KIND_WORDS, paid_row
from crowd.ground.amounts import is_typed
from crowd.ground.broker_silence import asking_workers
from crowd.models import Payout, Posting
from crowd.money.ledger import release as release_payouts
from crowd.money.ledger import withhold as withhold_payouts
from crowd.money.manual_decisions import pay_by_hand
from crowd.money.totals import write_rows
from crowd.people.decisions import record
from crowd.people.result_seals import concealing, seals
from crowd.people.second_approval import ask, asks_for_second, confirm, waiting
from crowd.platforms import has_service
from experiments.models import Study
from experiments.selectors import definition_of
from experiments.sessions.pseudonyms import namer

PER_PAGE = 50


@study_page("view")
def money(request: HttpRequest, study: Study) -> HttpResponse:
    places = places_of(study)
    wanted, at_it = sum(p.wanted for p in places), sum(p.in_progress for p in places)
    counted = money_of(study, wanted, at_it)
    present = modes_of(study)
    mode = request.GET.get("mode", "")
    mode = mode if mode in present else (present[0] if present else "")
    content: dict[str, Any] = {"places": places, "money": counted, "mode": mode}
    content["pays_matches"] = definition_of(study).reward.bonus_per_match_cents > 0
    if mode:
        content |= _ledger(request, study, mode, present)
    return study_response(request, study, "money", content)


def _ledger(request: HttpRequest, study: Study, mode: str, present: list[str]) -> dict[str, Any]:
    state, kind = request.GET.get("state", ""), request.GET.get("kind", "")
    page = page_of(request, payouts_of(study, mode, state, kind), PER_PAGE)
    name = namer(study)
    concealed = concealing(study, seals(study, ORIGIN_WORDS))

    def lines(rows: Iterable[Payout]) -> list[dict[str, Any]]:
        return [
            {
                "row": row,
                "shown": paid_row(row, row.session is not None and row.session.origin in concealed),
                "name": person_of(row, name),
            }
            for row in rows
        ]

    page.object_list = lines(page.object_list)
    states, spending = dict(Payout.State.choices), spending_of(study, mode)
    return {
        "spending": spending,
        "books": spending.books,
        "hands": needs_hand(study, mode),
        "awaited": spending.awaited,
        "hourly": hourly_of(study, mode),
        "batches": batches_of(study, mode),
        "page": page,
        "modes": choices(request, "mode", {m: MODES[m] for m in present}, mode) if len(present) > 1 else [],
        "mode_word": MODES[mode],
        "states": choices(request, "state", {"": "Any", **states}, state),
        "kinds": choices(request, "kind", {"": "Any", **KIND_WORDS}, kind),
        "is_filtered": bool(state or kind),
        "second_cents": settings.SECOND_PERSON_CENTS,
        "command": f"python manage.py settle {study.slug} --mode {mode}",
        "now": timezone.now(),
    }


class SettleForm(forms.Form):
    total = forms.CharField(max_length=40, error_messages={"required": "Type the total to pay it."})


@study_act("pay")
def settle(request: HttpRequest, study: Study, posting: int) -> HttpResponse:
    """Asks a worker to pay the batch that was shown. Its total must be typed, and must still be the same. A
    large one is only stored until another login has typed it as well."""
    row = get_object_or_404(Posting.objects.select_related("study"), pk=posting, study=study)
    if not has_service(row.platform):
        raise Http404("No machine of this platform pays.")
    form, batch = SettleForm(request.POST), batch_of(row)
    plan, user = batch.plan, researcher_of(request)
    total = form.cleaned_data["total"] if form.is_valid() else ""
    if plan.total_cents == 0:
        messages.error(request, "Nothing can be sent now.")
    elif not is_typed(total, plan.total_cents, plan.currency):
        messages.error(request, f"Nothing was sent. Type the total as it is shown: {plan.total}.")
    elif not settings.CELERY_BROKER_URL:
        messages.error(
            request, f"No message broker is configured, so a page cannot pay. Run: {batch.command}"
        )
    elif asks_for_second(plan.total_cents) and waiting(row, user, plan.total_cents) is None:
        ask(row, user, plan.total_cents)
        messages.success(
            request,
            f"Nothing was sent yet. Another person with the role “pay” has to type {plan.total} here, too.",
        )
    else:
        _send(request, row, batch)
    return redirect(f"{reverse('dashboard:money', args=[study.slug])}?mode={row.mode}")


def _send(request: HttpRequest, posting: Posting, batch: PayablePosting) -> None:
    """Confirms what another login asked for, if the sum needs it, and asks a worker: both or neither, so that
    a silent broker leaves the request as it is."""
    from crowd.tasks import pay_batch

    plan, user = batch.plan, researcher_of(request)
    with transaction.atomic(), asking_workers():
        if asks_for_second(plan.total_cents) and not confirm(posting, user, plan.total_cents):
            messages.error(request, "Nothing was sent: what was asked for changed meanwhile. Look again.")
            return
        pay_batch.delay(posting.pk, user.get_username(), plan.total_cents)
        said = f"Asked a worker to pay {plan.total} on {posting.platform} ({batch.mode.lower()})."
        record(posting.study, user, said)
    messages.success(
        request,
        f"A worker looks at the platform and pays {plan.total}, if that is still due. Look again "
        "in a minute.",
    )


class WithholdForm(forms.Form):
    act = forms.ChoiceField(choices=[(act, act) for act in ("withhold", "release", "by_hand")])
    reason = reason_field(": the person may ask for it.")


@study_form("pay")
def withhold(request: HttpRequest, study: Study, payout: int) -> HttpResponse:
    """Withholds one due payout in the name of the user, or releases it; or writes down that it was paid by
    hand."""
    row = get_object_or_404(
        Payout.objects.select_related("posting__study", "submission__session__participant", "session"),
        pk=payout,
        posting__study=study,
    )
    form = WithholdForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        with refusals(partial(messages.error, request)):
            if _decide_payout(row, researcher_of(request).get_username(), form.cleaned_data):
                messages.success(request, "Done; the log keeps your name and the reason.")
            else:
                messages.error(request, "Nothing was changed: the payout is in another state by now.")
        return redirect("dashboard:withhold", slug=study.slug, payout=row.pk)
    concealed = concealing(study, seals(study, ORIGIN_WORDS))
    content = {
        "row": row,
        "shown": paid_row(row, row.session is not None and row.session.origin in concealed),
        "name": person_of(row, namer(study)),
        "form": form,
        "where": title_of(row.posting.platform),
    }
    status = 400 if request.method == "POST" else 200
    return study_response(request, study, "withhold", content, status=status, current="money")


@study_page("view")
def books(request: HttpRequest, study: Study) -> HttpResponse:
    """Every payment and fee as CSV, for the finance office."""
    response = attachment(f"{study.slug}-money.csv", "text/csv")
    write_rows(study, response, concealing(study, seals(study, ORIGIN_WORDS)))
    return response


def _decide_payout(row: Payout, who: str, given: dict[str, str]) -> int:
    if given["act"] == "by_hand":
        pay_by_hand(row, who, given["reason"])
        return 1
    turn = withhold_payouts if given["act"] == "withhold" else release_payouts
    return turn([row.pk], who, given["reason"])
