"""The least that a Django view can do to store an answer: read JSON, one INSERT, reply. It checks nothing."""

import json

from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from crowd.urls import urlpatterns as served

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


urlpatterns = [path("bare/", bare), *served]
