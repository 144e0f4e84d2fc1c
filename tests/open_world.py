"""Opens the small world in the database of this process; as a command, for servers in others.

python -m tests.open_world open FOLDER [LINE ...]     makes and opens the study; LINEs replace its own
python -m tests.open_world tell                       prints what is stored, as JSON
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import django


def opened(folder: Path, *lines: str) -> dict[str, Any]:
    """Makes and opens the study, with these lines in the place of its own; what is stored then."""
    from tests import world  # imports torch, which the other commands do not need

    path = world.write_study(folder)
    # As large as in studies: a browser looks at them.
    changes = {line.split(" ")[0]: line for line in ("picture_px = 320", *lines)}
    changed = [changes.get(line.split(" ")[0], line) for line in path.read_text().splitlines()]
    path.write_text("\n".join(changed) + "\n")
    world.opened_study(path)
    return tell()


def tell() -> dict[str, Any]:
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
    """Publishes it on a simulated platform, as a researcher does. It stays on the local platform too."""
    from crowd.recruiting.publishing import publish_posting
    from experiments.models import Study

    publish_posting(Study.objects.get(), platform, "rehearsal", site=site, by="the tests")


def sign() -> None:
    """Asks that platform's people for a signed entry."""
    from crowd.models import Posting

    Posting.objects.exclude(site="").update(options={"signed_entry": True})


def fill(kept: bool) -> None:
    """Takes every free place, or gives them back."""
    from experiments.models import Slot

    Slot.objects.filter(holder=None).update(kept=kept)


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "crowd.settings")
    django.setup()
    print(json.dumps(opened(Path(sys.argv[2]), *sys.argv[3:]) if sys.argv[1] == "open" else tell()))
