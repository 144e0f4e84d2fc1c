"""Offering a study on a platform, as a researcher types it."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from analysis.tables.response_reader import study_facts
from crowd.ground.audit import study_log
from crowd.models import Posting
from crowd.recruiting.publishing import close, publish_posting
from crowd.study_check.publication_quote import quote_of
from experiments.errors import StudyError
from experiments.models import Slot, Study
from tests.crowd.offered_studies import changed, held, offers, public, simulated, study_of
from tests.services import ROOT
from tests.world import Person, draft_study, opened_study, write_study

__all__ = ["public"]
pytestmark = pytest.mark.django_db


@pytest.mark.both_databases("constraints")
def test_it_offers_an_open_study_once(tmp_path: Path, store_folder: Path) -> None:
    opened_study(write_study(tmp_path))
    Posting.objects.all().delete()
    call_command("publish", "small", "--platform", "local")
    call_command("publish", "small")
    assert list(Posting.objects.values_list("platform", "state", "mode")) == [("local", "open", "rehearsal")]


def test_it_offers_no_draft(tmp_path: Path, store_folder: Path) -> None:
    draft_study(write_study(tmp_path))
    with pytest.raises(CommandError, match="'small' is draft.*study_open small"):
        call_command("publish", "small")
    assert not Posting.objects.exists()


def test_it_names_the_way_to_a_study_that_is_not_there() -> None:
    with pytest.raises(CommandError, match="no study 'nowhere'"):
        call_command("publish", "nowhere")


def test_it_goes_live_with_every_place_free_for_people(tmp_path: Path, store_folder: Path) -> None:
    study = opened_study(write_study(tmp_path))
    robot = Person("robot", simulated="learner").take_part()
    assert robot.verdict == "passed" and study_facts(study, "simulated").conditions != ()
    slots = Slot.objects.filter(kept=True)
    assert slots.count() == 1 and sum(c.kept for c in study_facts(study, "human").conditions) == 0
    call_command("publish", "small", "--live")
    assert not slots.exists() and Posting.objects.get().live
    refused = Person("another", simulated="learner").join()
    assert refused.status_code == 403 and refused.json()["error"]["code"] == "not_admitted"
    assert Person("ada").join().status_code == 201


def publish(*words: str, typed: str = "", monkeypatch: pytest.MonkeyPatch | None = None) -> str:
    """The output of the command; `typed` is the researcher's input."""
    output = io.StringIO()
    if monkeypatch is not None:
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    call_command("publish", "wolf-or-husky", *words, stdout=output)
    return output.getvalue()


def on(sim: Any, platform: str = "prolific") -> tuple[str, ...]:
    return ("--platform", platform, "--simulator", sim.url)


def test_it_offers_by_link_with_codes_and_the_panels_own_names() -> None:
    study = study_of(platforms={"link": {"panel": "sona", "person_field": "survey_code"}})
    printed = publish("--platform", "link")
    posting = Posting.objects.get()
    assert f"/join/wolf-or-husky/?via={posting.key}" in printed and len(posting.codes) == 8
    assert posting.options["panel"] == "sona" and posting.mode == "rehearsal"
    again = publish("--platform", "link", "--live")
    assert "is live on link" in again and Posting.objects.get().live
    Study.objects.filter(pk=study.pk).update(definition={**study.definition, "platforms": {"link": {"x": 1}}})
    with pytest.raises(CommandError, match="platforms.link.x is not a key"):
        publish("--platform", "link")
    assert "closed" in publish("--platform", "link", "--close")


@pytest.mark.parametrize("platform", ["prolific", "mturk"])
def test_it_shows_everything_and_publishes_when_the_sum_is_typed(
    platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study_of()
    with simulated(platform) as sim:
        with pytest.raises(CommandError, match="Nothing was sent. To do it without being asked"):
            publish(*on(sim, platform), "--places", "5", typed="", monkeypatch=monkeypatch)
        with pytest.raises(CommandError, match="Nothing was sent: '5' is not"):
            publish(*on(sim, platform), "--places", "5", typed="5\n", monkeypatch=monkeypatch)
        with pytest.raises(CommandError, match="'five' is not"):
            publish(*on(sim, platform), "--places", "5", typed="five\n", monkeypatch=monkeypatch)
        assert not Posting.objects.exists() and not offers(platform, sim)
        shown = io.StringIO()
        monkeypatch.setattr(sys, "stdin", Typist(shown))
        call_command("publish", "wolf-or-husky", *on(sim, platform), "--places", "5", stdout=shown)
        posting = Posting.objects.get()
        assert offers(platform, sim)[0]["places"] == 5 and posting.state == "open"
        total = quote_of(posting).total_cents
    text = shown.getvalue()
    for part in (
        "Can you predict the machine?",
        f"?via={posting.key}",
        "1.00 USD for 5 minutes",
        "12.00 USD",
    ):
        assert part in text
    assert posting.codes["complete"] in text and f"{total // 100}.{total % 100:02d} USD" in text
    assert "The account holds" in text and "settle wolf-or-husky" in text
    assert posting.cap_cents == total and study_log(posting.study)


class Typist:
    """A researcher who types the sum that is asked for."""

    def __init__(self, shown: io.StringIO) -> None:
        self.shown = shown

    def readline(self) -> str:
        sums = re.findall(r"Type the sum of ([0-9.,]+) ", self.shown.getvalue())
        return f"{sums[-1]}\n"


def test_it_takes_the_sum_as_an_option_and_a_cap_above_it() -> None:
    study_of()
    with simulated("prolific") as sim:
        with pytest.raises(CommandError, match="--cap 1.00 USD is less than the total of"):
            publish(*on(sim), "--places", "3", "--cap", "1", "--total", "1")
        printed = publish(*on(sim), "--places", "3", "--cap", "20", "--total", "20.00")
        assert "wolf-or-husky is open on prolific (rehearsal) with 3 places, 0 taken" in printed
        assert Posting.objects.get().cap_cents == 2000
        again = publish(*on(sim), "--places", "3")
        assert "It is there already" in again and Posting.objects.count() == 1
        with pytest.raises(CommandError, match="needs a reason"):
            publish(*on(sim), "--cap", "30", "--total", "30")
        publish(*on(sim), "--cap", "30", "--total", "30", "--reason", "two more people will come")
        assert Posting.objects.get().cap_cents == 3000


def test_it_changes_what_is_offered() -> None:
    study_of()
    with simulated("prolific") as sim:
        publish(*on(sim), "--places", "3", "--cap", "20", "--total", "20")
        held(Posting.objects.get(), sim)
        assert "1 awaiting" in publish("--platform", "prolific", "--sync")
        assert "is paused" in publish("--platform", "prolific", "--rehearse", "--pause")
        assert "is open" in publish("--platform", "prolific", "--resume")
        with pytest.raises(CommandError, match="Nothing was sent: '1' is not"):
            publish("--platform", "prolific", "--add", "2", "--total", "1")
        due = quote_of(Posting.objects.get(), 5).total_cents
        printed = publish("--platform", "prolific", "--add", "2", "--total", f"{due // 100}.{due % 100:02d}")
        assert "with 5 places" in printed and "5, 2 of them new" in printed
        with pytest.raises(CommandError, match="99 places are more than"):
            publish("--platform", "prolific", "--add", "99")
        assert "is closed" in publish("--platform", "prolific", "--close", "--by", "grace")
        with pytest.raises(CommandError, match="has no such posting on prolific that is open"):
            publish("--platform", "prolific", "--pause")
        sim.faults.down = True
        with pytest.raises(CommandError, match="prolific could not be read, and nothing was lost"):
            publish("--platform", "prolific", "--sync")
    log = [entry.change_message for entry in study_log(Study.objects.get())]
    assert "grace: Closed: places on prolific (rehearsal)." in log


def test_it_publishes_a_pilot_with_slots_of_its_own() -> None:
    study = study_of()
    with pytest.raises(CommandError, match="how many places the pilot has"):
        publish("--platform", "prolific", "--live", "--pilot")
    with simulated("prolific") as sim:
        publish_posting(study, "prolific", "live", pilot=True, places=5, cap_cents=5000, site=sim.url)
        printed = publish("--platform", "prolific", "--live", "--pilot", "--pause")
        assert "--pilot --add N" in printed
        publish("--platform", "prolific", "--live", "--pilot", "--resume")
        assert Posting.objects.get().pilot and Slot.objects.filter(pilot=True).count() == 5
        publish("--platform", "prolific", "--pilot", "--add", "2", "--total", total_for(7))
        assert Posting.objects.get().places == 7 and Slot.objects.filter(pilot=True).count() == 7
        assert Slot.objects.filter(pilot=False).count() == 12


def total_for(places: int) -> str:
    cents = quote_of(Posting.objects.get(), places).total_cents
    return f"{cents // 100}.{cents % 100:02d}"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--platform", "prolific"), "Say how real it is: --rehearse first .*then --live.$"),
        (("--platform", "mturk"), "then --live or --sandbox.$"),
        (
            ("--platform", "prolific", "--live"),
            "PROLIFIC_TOKEN, PROLIFIC_WORKSPACE, PROLIFIC_PROJECT must be",
        ),
        (("--platform", "prolific", "--sandbox"), "Prolific has no sandbox"),
        (("--platform", "mturk", "--live"), "Set MTURK_PRODUCTION=true"),
        (("--platform", "prolific", "--rehearse", "--pilot", "3"), "leave out --pilot"),
        (
            ("--platform", "prolific", "--simulator", "http://localhost:1", "--pilot", "3"),
            "Leave out --pilot, or publish the pilot --live",
        ),
        (("--platform", "mturk", "--sandbox", "--pilot", "3"), "only simulated ones come to a sandbox"),
        (("--platform", "local", "--sandbox"), "local has no sandbox and no simulator"),
        (("--platform", "local", "--pause"), "has no such posting on local"),
    ],
)
def test_it_says_what_is_missing(words: tuple[str, ...], message: str) -> None:
    study_of()
    with pytest.raises(CommandError, match=message):
        publish(*words)
    assert not Posting.objects.exists()


def test_it_goes_live_only_once_signed_entry_is_said() -> None:
    """No call tells which account has it, so neither answer may be the default."""
    study = study_of(platforms={})
    with simulated("prolific") as sim:
        with pytest.raises(StudyError, match="signed_entry = true if your account has it"):
            publish_posting(study, "prolific", "live", places=4, site=sim.url)
        assert not Posting.objects.exists()
        for said in (True, False):
            changed(study, platforms={"prolific": {"signed_entry": said}})
            posting = publish_posting(study, "prolific", "live", places=4, site=sim.url)
            assert posting.options["signed_entry"] is said
            close(posting)


def test_it_sends_no_people_to_an_address_that_they_cannot_reach(settings: Any) -> None:
    study_of()
    settings.SECURE, settings.BASE_URL = False, "http://127.0.0.1:8000"
    with pytest.raises(CommandError, match="People on prolific cannot reach http://127.0.0.1:8000"):
        publish("--platform", "prolific", "--live")


def test_it_refuses_what_ethics_forbids_with_every_reason() -> None:
    study_of(reward={"amount_cents": 50, "expected_minutes": 5}, texts={"consent": "", "debrief": "d"})
    with (
        simulated("prolific") as sim,
        pytest.raises(CommandError, match="(?s)2 mistakes.*floor.*texts.consent"),
    ):
        publish(*on(sim))


def test_it_takes_recruiting_from_the_file_and_nothing_else(tmp_path: Path, store_folder: Path) -> None:
    path = write_study(tmp_path)
    study = opened_study(path)
    text = path.read_text()
    path.write_text(
        text + '[recruitment]\ndescription = "Look at pictures."\n[platforms.link]\npanel = "sona"\n'
    )
    call_command("publish", str(path), "--platform", "link")
    study.refresh_from_db()
    assert study.definition["recruitment"]["description"] == "Look at pictures."
    assert Posting.objects.get(platform="link").options["panel"] == "sona"
    path.write_text(text.replace("expected_minutes = 4", "expected_minutes = 3"))
    with pytest.raises(CommandError, match="only .recruitment. and .platforms. may differ"):
        call_command("publish", str(path), "--platform", "link")


OTHER = pytest.mark.long(stays="test_it_makes_one_offer_though_it_is_killed_at_any_call")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("platform", ["prolific", pytest.param("mturk", marks=OTHER)])
def test_it_makes_one_offer_though_it_is_killed_at_any_call(
    platform: str, project_env: dict[str, str], tmp_path: Path
) -> None:
    """Another process publishes; it is killed (-9) after a call took effect and before the answer came."""
    run = runner(project_env, tmp_path)
    assert run("shell", "-c", STORE).returncode == 0
    with simulated(platform) as sim:
        words = (
            "publish",
            "wolf-or-husky",
            *on(sim, platform),
            "--places",
            "3",
            "--cap",
            "50",
            "--total",
            "50",
        )
        killed = 0
        for operation in DEADLY[platform]:
            process = start(words, project_env)
            sim.before_reply[:] = [lambda call, at=operation, to=process: kill(to, call, at)]
            killed += process.wait(120) == -signal.SIGKILL
            sim.before_reply.clear()
        done = run(*words)
        assert done.returncode == 0, done.stderr
        assert killed == len(DEADLY[platform])
        assert [spec["places"] for spec in offers(platform, sim)] == [3]
    assert "is open on" in done.stdout


DEADLY = {"prolific": ("POST studies/", "transition"), "mturk": ("CreateHITType", "CreateHITWithHITType")}
"""Calls after whose effect the process dies, each in a run of its own."""
STORE = """
from tests.crowd.offered_studies import study_of
study_of()
"""


def kill(process: subprocess.Popen[bytes], call: Any, at: str) -> None:
    text = f"{call.operation} {call.method} {call.path}"
    is_creation = call.method == "POST" and call.path.rstrip("/").endswith("/studies")
    if at in text or (at == "POST studies/" and is_creation):
        os.kill(process.pid, signal.SIGKILL)
        process.wait(60)


def environment(env: dict[str, str]) -> dict[str, str]:
    more = {"BASE_URL": "https://study.example.org", "SECRET_KEY": "only-for-tests"}
    return {**os.environ, **env, **more}


def start(words: tuple[str, ...], env: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "manage.py", *words], cwd=ROOT, env=environment(env), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


def runner(env: dict[str, str], folder: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "manage.py", *words], cwd=ROOT, env=environment(env), capture_output=True,
            text=True, timeout=120,
        )  # fmt: skip

    return run
