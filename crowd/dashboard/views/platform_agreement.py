"""Platform, server and browser compared, one line per submission; disagreements come first."""

from __future__ import annotations

from collections import Counter

from django.http import HttpRequest, HttpResponse

from crowd.dashboard.access import study_page
from crowd.dashboard.layout import choices, page_of, study_response
from crowd.dashboard.rows.postings import mode_word, title_of
from crowd.dashboard.rows.sessions import SUBMISSION_WORDS
from crowd.money.submission_comparison import agreement_of
from experiments.models import Study
from experiments.sessions.pseudonyms import namer

PER_PAGE = 50


@study_page("view")
def agreement(request: HttpRequest, study: Study) -> HttpResponse:
    kind = request.GET.get("kind", "")
    shown = agreement_of(study, kind)
    page, name = page_of(request, shown.rows, PER_PAGE), namer(study)
    people, sentences = Counter[str](), dict[str, str]()
    for each in shown.disagreements:
        people[each.kind] += len(each.people)
        sentences.setdefault(each.kind, each.sentence)
    page.object_list = [
        {
            "row": row,
            "session": row.submission.session,
            "name": name(row.submission.session.participant.pseudonym) if row.submission.session else "",
            "where": title_of(row.posting.platform),
            "mode": mode_word(row.posting),
            "word": SUBMISSION_WORDS.get(row.seen.theirs.state, row.seen.theirs.state),
        }
        for row in page.object_list
    ]
    words = {"": "All"} | {key: f"{sentence} ({people[key]})" for key, sentence in sentences.items()}
    content = {
        "page": page,
        "disagreeing": shown.disagreeing,
        "disagreements": shown.disagreements,
        "kinds": choices(request, "kind", words, kind),
        "kind": kind,
    }
    return study_response(request, study, "agreement", content, current="recruitment")
