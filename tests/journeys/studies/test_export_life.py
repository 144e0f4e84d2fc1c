"""Ada, Bo, Cy and Dee take the small study; the export and the report must hold exactly their data."""

from __future__ import annotations

import csv
import json
import re
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from analysis.exports.delimited import read
from analysis.spreadsheet_cells import escape_cell
from crowd.models import Identity, Submission
from experiments.models import Participant, Response, Session, Study
from tests.world import Person, opened_study, write_study

pytestmark = pytest.mark.django_db

HOSTILE = (
    '<img src=x onerror="alert(1)">',
    "=cmd|'/c calc'!A1",
    "+1+1",
    "-2+3",
    "@SUM(A1:A9)",
    "\t=1+1",
    " \u00a0=1+1",
    "'=1",
    'a "quoted", and\r\n=two lines\n</script><script>alert(1)</script>',
)
PERSON, SUBMISSION = "A1PLATFORMPERSON7", "3SUBMISSIONOFDEE9"


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return opened_study(write_study(tmp_path / "study", slots=4))


@pytest.fixture
def tokens(study: Study) -> list[str]:
    """The sessions of the cast, to the end or as far as they came; their tokens, which stay secret."""
    ada, bo, cy = Person(PERSON), Person("bo"), Person("cy")
    ada.arrive()
    ada.answer()
    assert ada.finish(HOSTILE[0]).status_code == 200
    bo.take_part(miss_checks=True)
    cy.arrive()
    cy.answer(7)
    dee = Person("dee", submission=SUBMISSION)
    dee.take_part()
    assert Person("dee", submission="another").join().json()["error"]["code"] == "taken_part"
    robot = Person("robot", simulated="learner")
    robot.take_part()
    return [person.token for person in (ada, bo, cy, dee, robot)]


def export(study: Study, folder: Path, *more: str) -> Path:
    seal = ("--unseal-as", "Grace", "--reason", "a test")
    call_command("export", study.slug, "--out", str(folder), *seal, *more, stdout=StringIO())
    return folder


def table(folder: Path, name: str) -> list[dict[str, str]]:
    with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle))


def test_it_exports_every_life_and_every_answer(study: Study, tokens: list[str], tmp_path: Path) -> None:
    folder = export(study, tmp_path / "out")
    people, trials = table(folder, "participants"), table(folder, "trials")
    assert len(people) == Session.objects.count() == 5
    assert len({row["participant"] for row in people}) == Participant.objects.count() == 5
    assert [(row["origin"], row["status"]) for row in people] == [
        ("human", "passed"),
        ("human", "screened"),
        ("human", "running"),
        ("human", "passed"),
        ("simulated", "passed"),
    ]
    assert people[1]["reasons"] == "instructed_share_min"
    assert len(trials) == Response.objects.count() == sum(int(row["responses"]) for row in people)
    for row in people:
        indices = [int(trial["trial_index"]) for trial in trials if trial["session"] == row["session"]]
        assert indices == list(range(int(row["responses"])))
    listed = {entry["name"]: entry["rows"] for entry in manifest(folder)["files"]}
    assert (listed["trials.csv"], listed["participants.csv"]) == (len(trials), len(people))


def manifest(folder: Path) -> dict[str, list[dict[str, object]]]:
    contents: dict[str, list[dict[str, object]]] = json.loads((folder / "manifest.json").read_text())
    return contents


def test_it_lets_no_outside_name_out(study: Study, tokens: list[str], tmp_path: Path) -> None:
    """Nothing by which a platform, a thief of the file or another participant could identify a person."""
    folder = export(study, tmp_path / "out")
    written = "".join(path.read_text(encoding="utf-8") for path in folder.iterdir())
    secrets = [PERSON, SUBMISSION, *tokens]
    for pseudonym in Participant.objects.values_list("pseudonym", flat=True):
        secrets += [str(pseudonym), pseudonym.hex]
    for session in Session.objects.all():
        secrets += [str(session.pk), session.pk.hex, session.token_hash, session.media_id]
    secrets += Identity.objects.values_list("person_hash", flat=True)
    secrets += Submission.objects.values_list("submission_hash", flat=True)
    assert len(secrets) == 7 + 10 + 20 + 5 + 5
    assert [secret for secret in secrets if secret in written] == []


def test_it_keeps_people_and_observers_apart_when_cleaned(
    study: Study, tokens: list[str], tmp_path: Path
) -> None:
    for folder, origin, passed in (("people", "human", 2), ("observers", "simulated", 1)):
        out = export(study, tmp_path / folder, "--cleaned", "--origin", origin)
        people = table(out, "participants")
        assert [(row["origin"], row["status"]) for row in people] == [(origin, "passed")] * passed
        sessions = {row["session"] for row in people}
        answers = Response.objects.filter(session__verdict="passed", session__origin=origin)
        trials = table(out, "trials")
        assert {row["session"] for row in trials} == sessions and len(trials) == answers.count()


@pytest.mark.long(stays="test_it_exports_every_life_and_every_answer")
def test_it_carries_free_text_unharmed_and_harmless(study: Study, tmp_path: Path) -> None:
    """Typed text is read back unchanged; for a spreadsheet it is words, and on no page it is a tag."""
    for number, text in enumerate(HOSTILE):
        person = Person(f"person-{number}")
        person.arrive()
        person.answer()
        assert person.gate({"strategy": text}).status_code == 200
        assert person.finish(text).status_code == 200
        assert person.session().comment == text
    folder = export(study, tmp_path / "out")
    for text, row in zip(HOSTILE, table(folder, "participants"), strict=True):
        assert row["comment"] == escape_cell(text)
        assert row["comment"][0] not in "=+-@\t\r" and row["comment"].strip()[0] not in "=+-@"
    frame = read(folder / "participants.csv", "participants")
    assert tuple(frame["comment"]) == HOSTILE
    assert tuple(json.loads(answers)["strategy"] for answers in frame["answers"]) == HOSTILE
    call_command("report", study.slug, "--out", str(tmp_path / "report"), stdout=StringIO())
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "<img" not in page and "<script" not in page


class Fetched(HTMLParser):
    """Every address that opening a page would ask for, in tags and in styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.found += re.findall(r"url\(\s*[\"']?([^\"')]+)", text)
        self.found += re.findall(r"@import\s+[\"']([^\"']+)", text)
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        wanted = {"src", "srcset", "href", "xlink:href", "data", "poster", "action", "formaction", "ping"}
        self.found += [value or "" for name, value in attrs if name in wanted]


def report_of(study: Study, folder: Path, origin: str) -> dict[str, object]:
    """The folder that the command writes for one origin; its page must need no other file."""
    call_command("report", study.slug, "--origin", origin, "--out", str(folder), stdout=StringIO())
    page = Fetched((folder / "report.html").read_text(encoding="utf-8"))
    assert [url for url in page.found if not url.startswith(("#", "data:"))] == []
    assert not page.tags & {"script", "iframe", "object", "embed", "base"}
    report: dict[str, object] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert {"flow", "conditions", "anova", "tukey"} <= set(report)
    return report


@pytest.mark.long(stays="test_it_keeps_people_and_observers_apart_when_cleaned")
def test_it_seals_people_by_condition_and_opens_when_the_study_closes(
    study: Study, tokens: list[str], tmp_path: Path
) -> None:
    report = report_of(study, tmp_path / "sealed", "human")
    assert report["sealed"] and report["anova"] is report["tukey"] is None
    for row in rows(report):
        assert {row[key] for key in ("accuracy", "accuracy_mean", "utility", "utility_k", "intervals")} == {
            None
        }
    assert 'id="figure-utility"' not in (tmp_path / "sealed" / "report.html").read_text()
    drawn = {path.stem for path in (tmp_path / "sealed" / "figures").iterdir()}
    assert drawn == {"flow"}, "the flow alone is told while results are sealed"
    assert not report_of(study, tmp_path / "observers", "simulated")["sealed"]
    Study.objects.filter(pk=study.pk).update(state="closed")
    opened = report_of(study, tmp_path / "open", "human")
    assert not opened["sealed"]
    # Ada and Dee always said what the model says; two people in two conditions are no test yet.
    assert [row["accuracy_mean"] for row in rows(opened) if row["n"]] == [1.0, 1.0]
    assert opened["anova"] is None


def rows(report: dict[str, object]) -> list[dict[str, object]]:
    conditions = report["conditions"]
    assert isinstance(conditions, list)
    return conditions


def test_it_counts_the_flow_of_the_cast(study: Study, tokens: list[str], tmp_path: Path) -> None:
    flow = report_of(study, tmp_path / "report", "human")["flow"]
    assert isinstance(flow, dict)
    assert flow["arrived"] == 4
    counts = [step["count"] for step in flow["steps"]]
    assert counts == [4, 4, 4, 4, 3, 2]
    assert [(rule["rule"], rule["count"]) for rule in flow["exclusions"]] == [("instructed_share_min", 1)]
