"""The participant's page as it is served: who may frame it, where its form may post, what a preview shows.

A GET makes no row and sets no cookie: robots that follow links leave nothing behind.
"""

from __future__ import annotations

import html
import json
import secrets
from functools import lru_cache
from urllib.parse import urlencode

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.views.decorators.clickjacking import xframe_options_exempt
from django.views.decorators.http import require_safe

from crowd.ground.platform_accounts import site_of
from crowd.joining.admission import entry_at, fields_of, find_posting, read_arrival
from crowd.models import Posting
from crowd.platforms import HERE, traits_of
from crowd.study_check.publication_quote import recruiting_of
from experiments.definition.study import StudyDefinition
from experiments.errors import InvalidRequest
from experiments.models import Study
from experiments.selectors import definition_of
from experiments.wording.language_rules import direction_of
from experiments.wording.markdown import html_of
from experiments.wording.sentence_tables import words_for
from experiments.wording.sentences import entry_words, money, own_page, placeholders

PLACEHOLDER = '<meta name="study" content="">'
APP_POLICY = (
    "default-src 'self'; img-src 'self' data: blob:; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "base-uri 'none'; object-src 'none'"
)
READ_ONLY_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)
NOBODY = "'none'"


@require_safe
@xframe_options_exempt
def join_page(request: HttpRequest, slug: str) -> HttpResponse:
    """The participant's page. The query string is the platform's and stays untouched."""
    path = settings.PARTICIPANT_PAGE_DIR / "index.html"
    if not path.is_file():
        return HttpResponse("The participant's page is not built. Run: make setup", status=503)
    study = Study.objects.filter(slug=slug).exclude(state=Study.State.DRAFT).first()
    query = request.META.get("QUERY_STRING", "")
    try:
        fields = fields_of(query)
    except InvalidRequest:
        return _lost_page(request, study, status=400)
    is_look = study is not None and "preview" in fields
    posting = find_posting(study, fields) if study is not None and not is_look else None
    if study is None or (posting is None and not is_look):
        return _lost_page(request, study)
    if posting is not None and _is_preview(posting, query):
        return _preview(request, posting)
    if posting is not None and traits_of(posting.platform).is_ours and "person" not in fields:
        # A visitor without an id gets a name in the address, so that a reload finds the same session without
        # any cookie.
        name = f"walk-in-{secrets.token_urlsafe(9)}"
        kept_fields = {key: fields[key] for key in ("via",) if key in fields}
        return HttpResponseRedirect(
            f"{request.path}?{urlencode({**kept_fields, 'person': name, 'submission': name})}"
        )
    return _app(path.stat().st_mtime_ns, study, posting)


def _app(changed_ns: int, study: Study, posting: Posting | None) -> HttpResponse:
    platform = posting.platform if posting is not None else HERE
    definition = definition_of(study)
    facts = {"study": study.slug, "platform": platform, "api": "/api/", "language": definition.tag}
    words = own_page(definition)
    whole = {**facts, "words": words} if words else facts
    filled = html.escape(json.dumps(whole), quote=True)
    content = _page(changed_ns).replace(PLACEHOLDER, f'<meta name="study" content="{filled}">')
    return _add_headers(HttpResponse(content), f"{APP_POLICY}; form-action {_targets(posting)}", posting)


@lru_cache(maxsize=1)
def _page(changed_ns: int) -> str:
    text = (settings.PARTICIPANT_PAGE_DIR / "index.html").read_text(encoding="utf-8")
    if PLACEHOLDER not in text:
        raise RuntimeError(f"the participant's page lacks {PLACEHOLDER}: build frontend/ again")
    return text


def _targets(posting: Posting | None) -> str:
    """The addresses that the last form may post to: the platform, and the page that it redirects to."""
    if posting is None:
        return "'self'"
    entry, site = entry_at(posting), site_of(posting)
    return " ".join(dict.fromkeys(("'self'", *entry.form_targets(site), *entry.ancestors(site))))


def _add_headers(response: HttpResponse, policy: str, posting: Posting | None) -> HttpResponse:
    """The headers of every page for participants: no caches, no referrer, framed by the platform alone."""
    ancestors = entry_at(posting).ancestors(site_of(posting)) if posting is not None else ("'self'",)
    response["Cache-Control"] = "no-store"
    response["Referrer-Policy"] = "no-referrer"
    framed_by = " ".join(ancestors) or NOBODY
    response["Content-Security-Policy"] = f"{policy}; frame-ancestors {framed_by}"
    return response


def _is_preview(posting: Posting, query: str) -> bool:
    try:
        return read_arrival(posting, query).preview
    except InvalidRequest:
        # The page itself says what is wrong with the address, in words and with a remedy.
        return False


def _preview(request: HttpRequest, posting: Posting) -> HttpResponse:
    """The page before acceptance: to be read, with nothing to press."""
    definition = definition_of(posting.study)
    words, filled = dict(entry_words(definition)), placeholders(definition)
    reward = definition.reward
    if reward.bonus_max_cents:
        bonus = money(reward.bonus_max_cents, definition)
        filled["pay"] = words["bonus"].format(reward=filled["reward"], bonus=bonus)
    else:
        filled["pay"] = filled["reward"]
    recruitment, _ = recruiting_of(posting.study)
    about = recruitment.description or definition.texts["instructions"]
    context = {
        "language": definition.tag,
        "direction": direction_of(definition.tag),
        "words": {name: text.format_map(filled) if "{" in text else text for name, text in words.items()
                  if name not in {"bonus", "network_full", "too_often"}},
        "study": filled,
        "is_paid": bool(reward.amount_cents or reward.bonus_max_cents),
        "warning": definition.ethics.content_warning,
        "about": html_of(about, filled),
        "consent": html_of("\n\n".join(_consent_texts(definition)), filled),
    }  # fmt: skip
    return _add_headers(render(request, "participant/preview.html", context), READ_ONLY_POLICY, posting)


def _consent_texts(definition: StudyDefinition) -> list[str]:
    """The consent, and below it what has a consent of its own."""
    ticks = [] if definition.plates is None else [words_for(definition)["plates_consent"]]
    return [definition.texts["consent"], *ticks]


def _lost_page(request: HttpRequest, study: Study | None, status: int = 404) -> HttpResponse:
    definition = definition_of(study) if study is not None else None
    language = definition.tag if definition is not None else "en"
    context = {"language": language, "direction": direction_of(language), "words": entry_words(definition)}
    response = render(request, "participant/lost.html", context, status=status)
    return _add_headers(response, READ_ONLY_POLICY, None)
