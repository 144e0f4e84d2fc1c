"""Opens the small world in the database of the environment, for servers in other processes.

python -m tests.open_world open FOLDER [LINE ...]     makes and opens the study; LINEs replace its own
python -m tests.open_world tell                       prints what is stored, as JSON
"""

import json
import os
import sys
from pathlib import Path

import django


def tell() -> dict[str, object]:
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
        "events": list(Event.objects.order_by("id").values_list("kind", flat=True)),
    }


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "crowd.settings")
    django.setup()
    from tests import world

    if sys.argv[1] == "open":
        path = world.write_study(Path(sys.argv[2]))
        changes = {line.split(" ")[0]: line for line in sys.argv[3:]}
        lines = [changes.get(line.split(" ")[0], line) for line in path.read_text().splitlines()]
        path.write_text("\n".join(lines) + "\n")
        world.opened_study(path)
    print(json.dumps(tell()))
