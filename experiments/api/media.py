"""Pictures for one session: an address of its own, and bytes that tell nothing beyond the picture."""

from __future__ import annotations

import logging
import re
from functools import lru_cache

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from experiments.api.errors import STORE_RETRY_S
from experiments.api.scene import media_files
from experiments.models import Session
from experiments.tokens import MEDIA_ID_LENGTH
from stimuli.errors import NotRendered, StoreSilent
from stimuli.store.media import read_media

log = logging.getLogger(__name__)

REFERENCE = re.compile(
    rf"[A-Za-z0-9_-]{{{MEDIA_ID_LENGTH + 22}}}"
)  # anything else never reaches the database


@lru_cache(maxsize=1024)
def _files(media_id: str, slot_id: int | None) -> dict[str, str]:
    session = Session.objects.select_related("study", "slot").get(media_id=media_id)
    return dict(media_files(session))


@require_safe
def media(request: HttpRequest, reference: str) -> HttpResponse:
    """One picture. The reference is an HMAC over session, trial and role; there is no shared ETag."""
    if not REFERENCE.fullmatch(reference):
        raise Http404("no such picture")
    media_id = reference[:MEDIA_ID_LENGTH]
    slot_id = Session.objects.filter(media_id=media_id).values_list("slot_id", flat=True).first()
    try:
        file = _files(media_id, slot_id).get(reference)
    except Session.DoesNotExist:
        file = None
    if file is None:
        raise Http404("no such picture")
    try:
        content, content_type = read_media(file)
    except NotRendered as error:
        log.error("a stored picture is missing: %s", file)
        raise Http404("no such picture") from error
    except StoreSilent as error:
        log.error("a stored picture cannot be read now: %s: %s", file, error)
        headers = {"Retry-After": str(STORE_RETRY_S), "Cache-Control": "no-store"}
        return HttpResponse("The picture cannot be read now.", "text/plain", 503, headers=headers)
    response = HttpResponse(content, content_type=content_type)
    response["Cache-Control"] = "private, max-age=86400, immutable"
    response["Referrer-Policy"] = "no-referrer"
    # A platform's sandboxed frame has no origin, so its requests are cross-site; the address itself is the
    # secret.
    response["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response
