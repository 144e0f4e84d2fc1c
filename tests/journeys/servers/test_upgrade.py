"""A newer version while a study runs: rows of the earlier are migrated, and people in the middle go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from analysis.stored_reports.refresh import refresh_report
from crowd.models import Posting, StudyRole
from experiments.models import Participant, Response, Session, Slot, Study
from tests import services
from tests.crowd.logins import login
from tests.journeys.servers.test_backup import Elsewhere, run
from tests.world import Person, opened_study, write_study

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.both_databases("migrations of rows")]
EARLIER = ("crowd 0010", "experiments 0013", "stimuli 0005", "analysis 0004")
"""Before alerts, notes, keys and what the page Quality is worked out from."""
TABLES = (Study, Participant, Session, Slot, Response, Posting, StudyRole)


def rows() -> dict[str, list[dict[str, Any]]]:
    """All but what the earlier version did not have."""
    return {
        table.__name__: [
            {name: value for name, value in row.items() if name != "measures"}
            for row in table.objects.order_by("pk").values()
        ]
        for table in TABLES
    }


@pytest.mark.long(stays="tests/before/test_old_page.py::test_the_old_page_goes_on_with_todays_server")
def test_people_in_the_middle_go_on_after_an_upgrade(
    server_env: dict[str, str], store_folder: Path, tmp_path: Path
) -> None:
    study = opened_study(write_study(tmp_path / "study"))
    desk = login("bo", "view", study=study)
    people = {name: Person(name) for name in ("ada", "cy")}
    for person, count in zip(people.values(), (5, None), strict=True):
        person.arrive()
        person.answer(count or len(person.trials()))
    people["cy"].refresh()
    assert people["cy"].finish().status_code == 200
    ada = people["ada"]
    state, before = ada.refresh(), rows()
    measures = people["cy"].session().measures
    assert measures
    lost = ada.good_response(ada.trials()[5])

    for name in EARLIER:
        done = run(server_env, "migrate", *name.split())
        assert done.returncode == 0, done.stderr
    # While the server is away an answer gets nowhere; the browser keeps it and sends it again.
    with services.web_server(server_env) as server:
        ada.client = Elsewhere(server)  # type: ignore[assignment]
    with pytest.raises(httpx.ConnectError):
        ada.respond(lost)
    told = run(server_env, "migrate")
    assert told.returncode == 0, told.stderr
    assert run(server_env, "migrate", "--check").returncode == 0
    assert rows() == before
    with services.web_server(server_env) as server:
        ada.client = Elsewhere(server)  # type: ignore[assignment]
        assert ada.refresh()["next"] == state["next"] == 5
        for trial in ada.trials()[5:]:
            assert ada.respond(ada.good_response(trial)).status_code == 200
        ada.refresh()
        assert ada.finish().status_code == 200
    assert people["cy"].session().measures != measures
    desk.get(f"/studies/{study.slug}/quality/")
    again = people["cy"].session().measures
    # A session ends some milliseconds before it is written that it has ended.
    assert again["rules"] == pytest.approx(measures["rules"], rel=0.05)
    assert again | {"rules": {}} == measures | {"rules": {}}, "the page works out what came before it"
    assert Session.objects.filter(verdict="passed").count() == 2
    assert refresh_report(study, "human").json["flow"]["steps"][-1]["count"] == 2
