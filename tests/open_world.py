"""Opens the small world in the database of the environment, for servers in other processes.

python -m tests.open_world open FOLDER [LINE ...]     makes and opens the study; LINEs replace its own
python -m tests.open_world offer PLATFORM SITE        publishes it on a simulated platform
python -m tests.open_world sign                       asks that platform's people for a signed entry
python -m tests.open_world fill|free                  takes every free place, or gives them back
python -m tests.open_world tell                       prints what is stored, as JSON
"""

import json
import os
import sys
from pathlib import Path

import django


def tell() -> dict[str, object]:
    from crowd.models import Posting
    from experiments.models import Event, Response, Session, Study

    study = Study.objects.get()
    return {
        "practice": [row["answer"] for row in study.practice if not row["example"]],
        "quiz": {question["id"]: question["answer"] for question in study.definition["quiz"]},
        "sessions": [
            {
                "state": session.state,
                "verdict": session.verdict,
                "comment": session.comment,
                "trials": session.slot.trials.count() if session.slot else 0,
            }
            for session in Session.objects.order_by("started_at")
        ],
        "responses": [
            {"position": row.position, "trial": row.trial_id, "value": row.value, "context": row.context}
            for row in Response.objects.order_by("session__started_at", "position")
        ],
        "postings": {
            posting.platform: {"external_id": posting.external_id, "codes": posting.codes}
            for posting in Posting.objects.exclude(state="closed")
        },
        "events": list(Event.objects.order_by("id").values_list("kind", flat=True)),
    }


def offer(platform: str, site: str) -> None:
    """As a researcher publishes a rehearsal. The study stays on the local platform too."""
    from crowd.recruiting.publishing import publish_posting
    from experiments.models import Study

    publish_posting(Study.objects.get(), platform, "rehearsal", site=site, by="the tests")


def sign() -> None:
    from crowd.models import Posting

    Posting.objects.exclude(site="").update(options={"signed_entry": True})


def fill(kept: bool) -> None:
    from experiments.models import Slot

    Slot.objects.filter(holder=None).update(kept=kept)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "crowd.settings")
    django.setup()
    if sys.argv[1] == "open":
        from tests import world  # imports torch, which the other commands do not need

        path = world.write_study(Path(sys.argv[2]))
        # As large as in studies: a browser looks at them.
        lines = ["picture_px = 320", *sys.argv[3:]]
        changes = {line.split(" ")[0]: line for line in lines}
        lines = [changes.get(line.split(" ")[0], line) for line in path.read_text().splitlines()]
        path.write_text("\n".join(lines) + "\n")
        world.opened_study(path)
    elif sys.argv[1] == "offer":
        offer(sys.argv[2], sys.argv[3])
    elif sys.argv[1] == "sign":
        sign()
    elif sys.argv[1] in ("fill", "free"):
        fill(sys.argv[1] == "fill")
    print(json.dumps(tell()))
