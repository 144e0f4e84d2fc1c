"""The least that a Django view can do to store an answer: read JSON, one INSERT, reply. It checks nothing.
And a picture as it is stored, which is looked up as the real view does.
"""

import json

from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from crowd.urls import urlpatterns as served
from experiments.api.media import pictures_of
from experiments.models import Session
from experiments.tokens import MEDIA_ID_LENGTH
from stimuli.store.media_access import read_media

# The same columns, indexes and foreign keys as the table that it stands for.
CREATE = """
    CREATE TABLE bare_response (LIKE experiments_response INCLUDING ALL);
    ALTER TABLE bare_response
        ADD FOREIGN KEY (session_id) REFERENCES experiments_session (id),
        ADD FOREIGN KEY (trial_id) REFERENCES experiments_trial (id)
"""
INSERT = """
    INSERT INTO bare_response
        (session_id, trial_id, position, remaining, value, rt_ms, shown_ms, context, late, received_at)
    VALUES (%s, %s, %s, 0, %s, %s, %s, %s, false, now())
"""


@csrf_exempt
def bare(request: HttpRequest) -> JsonResponse:
    body = json.loads(request.body)
    answer = body["responses"][0]
    with connection.cursor() as cursor:
        cursor.execute(
            INSERT,
            [
                body["session"],
                int(answer["trial"]),
                body["position"],
                json.dumps(answer["value"]),
                answer["rt_ms"],
                answer["shown_ms"],
                json.dumps(answer["context"]),
            ],
        )
    return JsonResponse({"next": body["position"] + 1, "step": "trials", "feedback": {}})


def picture(request: HttpRequest, reference: str) -> HttpResponse:
    media_id = reference[:MEDIA_ID_LENGTH]
    [slot_id] = Session.objects.values_list("slot_id", flat=True).filter(media_id=media_id)
    content, content_type = read_media(pictures_of(media_id, slot_id)[reference].file)
    return HttpResponse(content, content_type=content_type)


urlpatterns = [path("bare/", bare), path("bare/m/<str:reference>", picture), *served]
