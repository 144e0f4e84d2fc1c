"""Needs your hand: the list of what only a person can settle, and settling one person's money by name."""

from __future__ import annotations

from functools import partial

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils import timezone

from crowd.dashboard.access import reason_field, refusals, researcher_of, study_form, study_page
from crowd.dashboard.layout import choices, study_response
from crowd.dashboard.rows.ledger import MODES, modes_of, needs_hand, person_of
from crowd.dashboard.rows.postings import mode_word, title_of
from crowd.dashboard.rows.sessions import paid_row
from crowd.models import Payout, StatementLine, Submission
from crowd.money.manual_decisions import accept, send_again, tally_of
from crowd.money.platform_statement import name_of
from crowd.people.result_seals import concealing, seals
from crowd.platforms import has_service
from experiments.models import Study
from experiments.sessions.pseudonyms import namer


@study_page("view")
def hand(request: HttpRequest, study: Study) -> HttpResponse:
    """The list of one mode; the most real mode first."""
    present = modes_of(study)
    mode = request.GET.get("mode", "")
    mode = mode if mode in present else (present[0] if present else "")
    content = {
        "mode": mode,
        "mode_word": MODES.get(mode, ""),
        "modes": choices(request, "mode", {m: MODES[m] for m in present}, mode) if len(present) > 1 else [],
        "hands": needs_hand(study, mode) if mode else [],
        "now": timezone.now(),
    }
    return study_response(request, study, "hand", content, current="money")


class StatementForm(forms.Form):
    act = forms.ChoiceField(choices=[(act, act) for act in ("again", "accept")])
    reason = reason_field("; ledger and log keep it.")


@study_form("view", "pay")
def statement(request: HttpRequest, study: Study, submission: int) -> HttpResponse:
    """One person's payments beside the platform's statement, and what a named person decides about them."""
    rows = Submission.objects.select_related("posting__study", "session__participant", "identity")
    row = get_object_or_404(rows, pk=submission, posting__study=study)
    if not has_service(row.posting.platform):
        raise Http404("No machine of this platform lists payments.")
    form = StatementForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        decide = send_again if form.cleaned_data["act"] == "again" else accept
        with refusals(partial(form.add_error, None)):
            decide(row, researcher_of(request).get_username(), form.cleaned_data["reason"])
            messages.success(request, "Done; the log keeps your name and the reason.")
            return redirect("dashboard:statement", slug=study.slug, submission=row.pk)
    problems = [str(error) for errors in form.errors.values() for error in errors] if form.is_bound else []
    content = _statement(study, row) | {"form": form, "problems": problems}
    status = 400 if request.method == "POST" else 200
    return study_response(request, study, "statement", content, status=status, current="money")


def _statement(study: Study, row: Submission) -> dict[str, object]:
    concealed = concealing(study, seals(study, [row.session.origin])) if row.session is not None else ()
    is_concealed = row.session is not None and row.session.origin in concealed
    tally = tally_of(row)
    payouts = Payout.objects.filter(submission=row).select_related("submission", "session__participant")
    name = namer(study)
    lines = StatementLine.objects.filter(submission=row).order_by("kind", "pk")
    return {
        "row": row,
        "name": next((person_of(payout, name) for payout in payouts), name_of(row)),
        "where": title_of(row.posting.platform),
        "mode": mode_word(row.posting),
        "payouts": [(payout, paid_row(payout, is_concealed)) for payout in payouts.order_by("pk")],
        "lines": [] if is_concealed else lines,
        "is_concealed": is_concealed,
        "tally": tally,
        "can_release": tally is not None and bool(tally.missing or tally.withdrawn),
        "can_accept": tally is not None and tally.may_be_accepted,
    }
