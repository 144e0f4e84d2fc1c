"""The stored plan of real studies, its digest, and what departs from it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from analysis.exports.study_export import Request, export_study
from analysis.reports.output.html import page
from analysis.stored_reports.departures import plan_facts, report_facts
from analysis.stored_reports.refresh import make_report, refresh_report
from experiments.definition.preregistration_table import PreregistrationTable
from experiments.models import Preregistration, Session, Slot, Study
from experiments.opening.preregistration import name_registry
from stimuli.models import Stimulus
from tests.analysis.stored import cast, full, opened

pytestmark = pytest.mark.django_db


@pytest.fixture
def study() -> Study:
    return opened()


def departures(study: Study, origin: str = "human") -> dict[str, tuple[str, str]]:
    rows = plan_facts(study, origin)["departures"]
    return {row["field"]: (row["planned"], row["now"]) for row in rows}


def changed(study: Study, **tables: Any) -> None:
    """The stored definition with other tables, past all that refuses it."""
    Study.objects.filter(pk=study.pk).update(definition={**study.definition, **tables})
    study.refresh_from_db()


def test_it_stores_the_plan_with_a_digest_that_anybody_can_recompute(study: Study, tmp_path: Path) -> None:
    stored = Preregistration.objects.get(study=study)
    document = json.loads(stored.document)
    written = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert hashlib.sha256(written.encode()).hexdigest() == stored.digest
    assert document["sample_size"] == {"total": 12, "places": {"baseline": 4, "control": 4, "grad_cam": 4}}
    assert document["digests"]["plans"] == study.plan_digest
    assert document["hypotheses"] is None and document["alpha"] is None
    assert stored.stored_at >= study.opened_at  # type: ignore[operator]
    cast(study)
    export_study(study, tmp_path / "out", Request())
    told = json.loads((tmp_path / "out" / "preregistration.json").read_text())
    again = json.dumps(told["document"], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert hashlib.sha256(again.encode()).hexdigest() == told["digest"] == stored.digest
    text = (tmp_path / "out" / "preregistration.md").read_text()
    assert "## Hypotheses\n\n- Not stated." in text and "not independently witnessed" in text


def test_an_unchanged_study_lists_no_departure(study: Study) -> None:
    full(study)
    report = make_report(study, "human")
    said = report.json()["preregistration"]
    assert said["departures"] == [] and said["stored"]
    (section,) = [section for section in report.sections if section.key == "preregistration"]
    assert "No departure from the stored plan." in section.paragraphs
    assert "not independently witnessed" in section.paragraphs[0]
    assert "No departure from the stored plan." in page(report)


def test_it_lists_a_rule_that_was_changed_or_added(study: Study) -> None:
    changed(study, screening={"total_minutes": {"limit": [1, 20], "timing": None}})
    told = departures(study)
    assert told["exclusion_rules.total_minutes.limit"] == ("none", "[1.0,20.0]")
    assert told["exclusion_rules.total_minutes.timing"] == ("none", "after")
    assert "digests.definition" in told and not [name for name in told if name.startswith("sample")]


@pytest.mark.parametrize(
    ("table", "field", "now"),
    [
        ({"smallest_effect": {"points": 5}}, "smallest_effect.points", "5.0"),
        ({"alpha": 0.01}, "alpha", "0.01"),
        ({"contrasts": "tukey"}, "contrasts", "tukey"),
        (
            {"hypotheses": ["Grad-CAM is above the baseline."]},
            "hypotheses",
            "Grad-CAM is above the baseline.",
        ),
    ],
)
def test_it_lists_what_was_declared_afterwards(
    study: Study, table: dict[str, Any], field: str, now: str
) -> None:
    changed(study, preregistration=table)
    planned, said = departures(study)[field]
    assert planned == "none" and now in said
    # Another planned contrast is another planned test.
    assert ("planned_analysis" in departures(study)) == (field == "contrasts")


def test_it_lists_places_that_were_taken_away_and_added(study: Study) -> None:
    slot = Slot.objects.filter(condition__name="control").latest("ordinal")
    slot.trials.all().delete()
    slot.delete()
    Slot.objects.create(
        study=study, ordinal=99, arm="grad_cam", condition=study.conditions.get(name="grad_cam"), matched=9
    )
    told = departures(study)
    assert told == {
        "sample_size.places.control": ("4", "3"),
        "sample_size.places.grad_cam": ("4", "5"),
    }


def test_it_lists_pictures_that_are_others_now_by_condition(study: Study) -> None:
    shown = Stimulus.objects.filter(renderings__condition__name="grad_cam").earliest("pk")
    Stimulus.objects.filter(pk=shown.pk).update(picture_digest="f" * 64)
    before = json.loads(Preregistration.objects.get().document)["digests"]["pictures"]
    told = departures(study)
    changed_conditions = {name.removeprefix("digests.pictures.") for name in told}
    assert "grad_cam" in changed_conditions and "baseline" not in changed_conditions
    assert told["digests.pictures.grad_cam"][0] == before["grad_cam"]


def test_it_lists_people_left_out_by_hand_and_results_opened_early(study: Study) -> None:
    people = cast(study)
    Session.objects.filter(pk=people["ada"].pk).update(
        excluded={"by": "Ruth", "reason": "Wrote that a child had answered.", "at": "2026-02-03"}
    )
    assert "1 person left out, decided by hand: Wrote that a child" in departures(study)["people left out"][1]
    # Each origin by itself.
    assert departures(study, "simulated") == {}
    study.unsealed_at, study.unsealed_by, study.unsealed_reason = study.opened_at, "Ruth", "A broken page."
    study.save()
    assert departures(study)["results opened"][1].endswith("by Ruth: A broken page.")


def test_it_lists_a_study_that_was_closed_before_all_places_were_kept(study: Study) -> None:
    cast(study)
    assert departures(study) == {}
    Study.objects.filter(pk=study.pk).update(state="closed")
    study.refresh_from_db()
    assert departures(study)["stopping"] == ("12 places kept", "closed with 1 of 12 kept")
    assert departures(study, "simulated") == {}


def test_it_notices_a_document_that_was_altered(study: Study) -> None:
    stored = Preregistration.objects.get()
    forged = stored.document.replace('"hypotheses":null', '"hypotheses":["We knew it all along."]')
    assert forged != stored.document
    Preregistration.objects.update(document=forged)
    assert departures(study)["the stored document itself"][0] == stored.digest


def test_a_later_version_of_the_code_is_a_note_and_no_departure(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plan_facts(study, "human")["notes"] == []
    for module in ("analysis.stored_reports.departures", "experiments.opening.preregistration"):
        monkeypatch.setattr(f"{module}.version", lambda name: "99.1")
    told = plan_facts(study, "human")
    assert told["departures"] == [] and "made by 99.1" in told["notes"][0]


def test_it_names_what_was_acknowledged_after_opening(study: Study) -> None:
    warned = {"condition": "", "kind": "leak", "what": "it leaks", "remedy": "mend it", "refuses": True}
    study.quality = {"conditions": [], "warnings": [warned], "digest": "d"}
    study.acknowledged = [{"by": "Ruth", "at": "2026-02-03T10:00", "reason": "known", "warnings": [warned]}]
    study.save()
    told = plan_facts(study, "human")
    assert told["departures"] == []
    assert told["notes"] == ["Acknowledged after opening, by Ruth on 2026-02-03: leak (all conditions)."]


@pytest.mark.usefixtures("undrawn", "few_draws")
def test_a_study_without_a_stored_plan_says_so_and_gets_none_afterwards(study: Study, tmp_path: Path) -> None:
    """As those that were opened before plans were stored."""
    Preregistration.objects.all().delete()
    full(study)
    report = make_report(study, "human")
    assert report.json()["preregistration"] == {"stored": False}
    assert "No plan is stored" in page(report)
    export_study(study, tmp_path / "out", Request())
    assert not list((tmp_path / "out").glob("preregistration*"))
    facts = report_facts(study)
    assert facts.alpha == 0.05 and facts.contrasts == "dunnett" and facts.smallest_effect == {}


def test_a_registry_is_named_once_and_then_stays(study: Study) -> None:
    name_registry(study, None)
    name_registry(study, PreregistrationTable())
    assert plan_facts(study, "human")["registry"] == ""
    name_registry(study, PreregistrationTable(registry="https://osf.io/abc12"))
    name_registry(study, PreregistrationTable(registry="https://osf.io/other"))
    told = plan_facts(study, "human")
    assert told["registry"] == "https://osf.io/abc12" and told["registry_named_at"]
    assert told["witness"].startswith("Registered at https://osf.io/abc12, as the author says")


@pytest.mark.long(stays="test_it_lists_a_rule_that_was_changed_or_added")
@pytest.mark.usefixtures("undrawn", "few_draws")
def test_the_stored_report_is_made_again_when_a_departure_comes(study: Study) -> None:
    full(study)
    assert refresh_report(study, "human").json["preregistration"]["departures"] == []
    changed(study, preregistration={"alpha": 0.01})
    fields = [row["field"] for row in refresh_report(study, "human").json["preregistration"]["departures"]]
    assert "alpha" in fields


def test_what_reports_know_of_the_plan_is_plain_json(study: Study) -> None:
    told = report_facts(study).preregistration
    assert json.loads(json.dumps(told)) == told
