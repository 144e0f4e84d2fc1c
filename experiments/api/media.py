"""Pictures for one session: an address of its own, and bytes that tell nothing beyond the picture."""

from __future__ import annotations

import logging
import re
from functools import lru_cache

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from experiments.api.error_responses import STORE_RETRY_S
from experiments.api.trial_scene import Picture, media_files
from experiments.models import Session
from experiments.opening.picture_lengths import serving
from experiments.tokens import MEDIA_ID_LENGTH
from stimuli.errors import NotRendered, ShapeMismatch, StoreSilent
from stimuli.store.media_access import read_media
from stimuli.store.png_padding import check_whole

log = logging.getLogger(__name__)

REFERENCE = re.compile(
    rf"[A-Za-z0-9_-]{{{MEDIA_ID_LENGTH + 22}}}"
)  # anything else never reaches the database


@lru_cache(maxsize=1024)
def pictures_of(media_id: str, slot_id: int | None) -> dict[str, Picture]:
    session = Session.objects.select_related("study", "slot").get(media_id=media_id)
    return dict(media_files(session))


@require_safe
def media(request: HttpRequest, reference: str) -> HttpResponse:
    """One picture. The reference is an HMAC over session, trial and role. No other address ever answers with
    the same bytes, and their number says nothing; this one always answers with the same.
    """
    if not REFERENCE.fullmatch(reference):
        raise Http404("no such picture")
    media_id = reference[:MEDIA_ID_LENGTH]
    try:
        slot_id, rooms = Session.objects.values_list("slot_id", "study__picture_bytes").get(media_id=media_id)
        picture = pictures_of(media_id, slot_id).get(reference)
    except Session.DoesNotExist as error:
        raise Http404("no such picture") from error
    if picture is None:
        raise Http404("no such picture")
    try:
        content, content_type = read_media(picture.file)
        check_whole(content, picture.file)
    except (NotRendered, ShapeMismatch) as error:
        log.error("a picture cannot be served: %s", error)
        raise Http404("no such picture") from error
    except StoreSilent as error:
        log.error("a stored picture cannot be read now: %s: %s", picture.file, error)
        headers = {"Retry-After": str(STORE_RETRY_S), "Cache-Control": "no-store"}
        return HttpResponse("The picture cannot be read now.", "text/plain", 503, headers=headers)
    content = serving(content, reference, rooms.get(picture.part, 0))
    response = HttpResponse(content, content_type=content_type)
    # A proxy that compresses pictures anew would take the padding off.
    response["Cache-Control"] = "private, max-age=86400, immutable, no-transform"
    response["Referrer-Policy"] = "no-referrer"
    # A platform's sandboxed frame has no origin, so its requests are cross-site; the address itself is the
    # secret.
    response["Cross-Origin-Resource-Policy"] = "cross-origin"
    return response
