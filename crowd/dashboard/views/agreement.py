"""Platform, server and browser compared, one line per submission; disagreements come first."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from crowd.dashboard.access import study_page
from crowd.dashboard.layout import Choice, address, study_response
from crowd.dashboard.postings import mode_word, title_of
from crowd.dashboard.sittings import SUBMISSION_WORDS
from experiments.models import Study
from experiments.pseudonyms import namer

PER_PAGE = 50


@study_page("view")
@require_safe
def agreement(request: HttpRequest, study: Study) -> HttpResponse:
    from crowd.money.comparison import agreement_of

    kind = request.GET.get("kind", "")
    shown = agreement_of(study, _number(request.GET.get("page", "1")), PER_PAGE, kind=kind)
    name = namer(study)
    groups: dict[str, dict[str, Any]] = {}
    for each in shown.disagreements:
        group = groups.setdefault(each.kind, {"kind": each.kind, "sentence": each.sentence, "n": 0})
        group["n"] += len(each.people)
    content = {
        "found": shown,
        "lines": [
            {
                "row": row,
                "session": row.submission.session,
                "name": name(row.submission.session.participant.pseudonym) if row.submission.session else "",
                "where": title_of(row.posting.platform),
                "mode": mode_word(row.posting),
                "word": SUBMISSION_WORDS.get(row.seen.theirs.state, row.seen.theirs.state),
            }
            for row in shown.rows
        ],
        "kinds": [
            Choice("All", address(request, kind=""), not kind),
            *(
                Choice(f"{group['sentence']} ({group['n']})", address(request, kind=key), key == kind)
                for key, group in groups.items()
            ),
        ],
        "kind": kind,
        "first": (shown.page - 1) * PER_PAGE + 1 if shown.total else 0,
        "last": min(shown.page * PER_PAGE, shown.total),
        "before": address(request, kind=kind) + f"&page={shown.page - 1}" if shown.page > 1 else "",
        "after": address(request, kind=kind) + f"&page={shown.page + 1}" if shown.page < shown.pages else "",
    }
    return study_response(request, study, "agreement", content, current="recruitment")


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else 1
