"""Makes the people of commit f38355e: a database and a store with sessions at every step, over that commit's
own HTTP API, pages and commands. Run it there, never on a later tree (README.md beside this folder).

python -m tests.before.making.people OUT       in an environment with DATABASE_URL, STORAGE_URL, LEGIBLE_VAR
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4
from zipfile import ZIP_STORED, ZipFile, ZipInfo

import django

from tests.before.making.persons import Keeping, answer_of, draw_images, matches_of

SECRET = "before: only for tests"
MORE = """
[policy]
screened_share = 0.5
[platforms.link]
panel = "panel"
person_field = "pid"
exits = { complete = "https://panel.example.org/done?code={code}&pid={person}" }
[[metrics]]
name = "sparsity"
[recruitment]
description = "Look at pictures and say what a machine answers."
excludes = ["list:colleagues"]
"""


def main(out: Path) -> None:
    os.environ.update({"SECRET_KEY": SECRET, "BASE_URL": "https://study.example.org"})
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "crowd.settings")
    os.environ["PAYOUT_GRACE_S"] = "900"
    os.environ["ALLOWED_HOSTS"] = "study.example.org,testserver"
    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    out.mkdir(parents=True, exist_ok=True)
    told = Making(out).run()
    (out / "people.json").write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")


class Making:
    def __init__(self, out: Path) -> None:
        from django.contrib.auth.models import User
        from django.test import Client

        self.out = out
        self.tape: list[list[Any]] = []
        user = User.objects.create_user("grace", password="a-long-enough-password")
        self.desk = Client(SERVER_NAME="study.example.org", headers={"X-Forwarded-Proto": "https"})
        self.desk.force_login(user)
        self.halfway: dict[str, dict[str, Any]] = {}

    def run(self) -> dict[str, Any]:
        from experiments.models import Study, Trial

        self.studies()
        self.colleagues()
        self.on_foot()
        self.by_link()
        self.turned_away()
        self.pilots()
        sim = self.on_prolific()
        self.decided_by_hand()
        self.closed()
        browser = self.recorded()
        self.pictures()
        self.exported()
        answers = {
            str(trial.pk): answer_of(trial)
            for trial in Trial.objects.filter(slot__study__slug__in=["before", "narrow"])
        }
        practice = {
            study.slug: {row["id"]: row["answer"] for row in study.practice} for study in Study.objects.all()
        }
        return {
            "secret": SECRET,
            "halfway": self.halfway,
            "answers": answers,
            "practice": practice,
            "browser": browser,
            "simulator": sim,
        }

    def studies(self) -> None:
        from django.core.management import call_command

        from tests import world

        changes = {
            "expected_minutes": 'expected_minutes = 4\ncurrency = "GBP"\nbonus_per_match_cents = 5\n'
            "bonus_max_cents = 30",
            "contact": 'contact = "lab@example.org"\ndeception = "The control says nothing of the machine."',
        }
        world.draw_images = draw_images
        for slug, slots, more in (
            ("before", 8, {}),
            ("narrow", 1, {}),
            ("closed", 2, {"title": 'title = "Links oder rechts"\nlanguage = "de"'}),
            ("draft", 1, {"seed": "seed = 12"}),
        ):
            folder = self.out / "studies" / slug
            path = world.write_study(folder, slug=slug, slots=slots, **changes, **more)
            path.write_text(path.read_text() + MORE)
            (folder / "debrief.md").write_text("# debrief\n\nThe control says nothing of the machine.\n")
            call_command("build_stimuli", str(path), stdout=io.StringIO())
            if slug != "draft":
                call_command("study_open", str(path), stdout=io.StringIO())
                call_command("publish", slug, platform="local", by="grace", stdout=io.StringIO())

    def colleagues(self) -> None:
        from django.core.management import call_command

        before, sys.stdin = sys.stdin, io.StringIO("colleague-1\ncolleague-2\n")
        call_command("exclude", "colleagues", platform="local", stdout=io.StringIO())
        sys.stdin = before

    def person(self, name: str, slug: str = "before", **more: Any) -> Any:
        return Keeping(name, slug, **more)

    def on_foot(self) -> None:
        """People who came by the plain address."""
        people = {name: self.person(name) for name in ("abe", "bea", "cal", "dan", "eve", "fay")}
        people["abe"].join()
        people["bea"].arrive("practice")
        people["cal"].arrive("practice")
        people["cal"].gate(people["cal"].good_value())
        assert people["cal"].session().state == "assigned"
        for name, count in (("dan", 4), ("eve", 9), ("fay", None)):
            people[name].arrive()
            people[name].answer(count)
        self.events(people["dan"])
        for name, person in people.items():
            self.keep(name, person)
        self.person("gus").take_part()
        self.person("hal").take_part(miss_checks=True)
        ivy = self.person("ivy")
        ivy.arrive("quiz")
        ivy.gate({"task": "truth"})
        ivy.gate({"task": "truth"})
        assert ivy.session().verdict == "screened"
        jon, kim = self.person("jon"), self.person("kim")
        for person in (jon, kim):
            person.arrive()
            person.answer(6)
            self.events(person)
            body = {"reason": "no time", "erase": person is jon, "query": person.query()}
            assert person.call("POST", "/api/session/withdraw/", body).status_code == 200
        lea = self.person("lea")
        lea.arrive("consent")
        assert lea.gate({"agree": False}).status_code == 200
        assert lea.session().state == "declined"
        ned = self.person("ned")
        ned.arrive()
        ned.answer()
        ned.gate({"strategy": "=1+1 by <b>eye</b>"})
        assert ned.call("POST", "/api/session/finish/", {"comment": "A brother helped."}).status_code == 200
        for number in range(2):
            self.person(f"robot-{number}", simulated="learner").take_part()
        small = self.person("small")
        small.join()
        assert small.gate({**small.good_value(), "width_px": 390}).status_code == 200
        body = {"reason": "no suitable device", "erase": False, "query": small.query()}
        assert small.call("POST", "/api/session/withdraw/", body).status_code == 200
        preview = self.desk.get("/studies/before/preview/").content.decode()
        query = re.search(r"/join/before/\?(preview=[^\"&]+)", preview)
        assert query is not None
        looking = self.person("looking", fixed=query[1])
        looking.join()
        assert looking.session().origin == "preview"

    def events(self, person: Any) -> None:
        trial = str(person.trials()[1].pk)
        rows = [("focus_lost", 900), ("focus_gained", 1800), ("reservoir_opened", 2500)]
        events = [
            {"id": str(uuid4()), "kind": kind, "trial": trial, "at_ms": at, "data": {}} for kind, at in rows
        ]
        reply = person.call("POST", "/api/session/events/", {"events": events})
        assert reply.status_code == 200, reply.content

    def by_link(self) -> None:
        from django.core.management import call_command

        from crowd.models import Posting

        call_command("publish", "before", platform="link", by="grace", stdout=io.StringIO())
        posting = Posting.objects.get(platform="link")
        for name in ("lou", "max"):
            query = f"via={posting.key}&pid={name}&submission=w-{name}"
            person = self.person(name, platform="link", fixed=query)
            if name == "lou":
                person.take_part()
            else:
                person.arrive()
                person.answer(11)
                self.keep(name, person)

    def turned_away(self) -> None:
        """Three places; four people pass the gates, and the last one finds no place."""
        people = {name: self.person(name, slug="narrow") for name in ("mia", "noa", "ole", "pat")}
        for person in people.values():
            person.join()
        for person in people.values():
            person.arrive("practice")
        for name in ("noa", "ole", "pat"):
            person = people[name]
            person.gate(person.good_value())
            if name == "pat":
                self.keep(name, person)
            else:
                person.take_part()
        late = people["mia"]
        reply = late.gate(late.good_value())
        assert late.session().state == "turned_away", reply.content

    def pilots(self) -> None:
        from django.core.management import call_command

        from crowd.models import Posting

        call_command("publish", "before", platform="local", pilot=2, by="grace", stdout=io.StringIO())
        posting = Posting.objects.get(study__slug="before", platform="local", pilot=True)
        for name in ("pim", "pam"):
            person = self.person(name, fixed=f"via={posting.key}&person={name}&submission={name}")
            if name == "pim":
                person.take_part()
            else:
                person.arrive()
                person.answer(3)
                self.keep(name, person)
            assert person.session().origin == "pilot"

    def on_prolific(self) -> dict[str, Any]:

        from crowd.recruitment import publish_posting
        from crowd.simulators import prolific
        from crowd.simulators.prolific.simulation import Simulator

        from crowd import accounts
        from crowd.models import Posting
        from experiments.models import Study

        accounts.open_market.__defaults__ = (lambda seconds: None,)
        tape, answer = self.tape, Simulator.__call__

        def taped(self: Any, asked: Any) -> Any:
            entry = [asked.method, asked.path, asked.body.decode(), dict(asked.headers), "answer lost"]
            if asked.method != "GET":
                tape.append(entry)
            reply = answer(self, asked)
            entry[-1] = None if reply is None else reply.status
            return reply

        Simulator.__call__ = taped
        options: dict[str, Any] = {"currency": "GBP"}
        with prolific.simulator(seed=3, options=prolific.Options(**options)) as sim:
            study = Study.objects.get(slug="before")
            posting = publish_posting(study, "prolific", "rehearsal", site=sim.url, places=10, by="grace")
            people: dict[str, Any] = {}
            for name in ("quy", "ria", "sam", "tia", "una", "vic", "wim", "xia", "yve", "zoe"):
                taken = self.control(sim.url, "take")
                query = taken["url"].partition("?")[2]
                person = self.person(name, platform="prolific", fixed=query)
                person.submission, person.outside = taken["submission"], taken["person"]
                people[name] = person
            for name in ("quy", "sam", "tia"):
                people[name].take_part()
                self.handed_in(sim, people[name], posting.codes["complete"])
            people["ria"].arrive("quiz")
            for _ in range(2):
                people["ria"].gate({"task": "truth"})
            self.handed_in(sim, people["ria"], posting.codes["screened"])
            self.settle(yes=True)
            # The next payment reaches the platform, and its answer is lost on the way.
            people["una"].take_part()
            self.handed_in(sim, people["una"], posting.codes["complete"])
            self.on_prolific_later(sim, posting, people)
            state = self.control(sim.url, "state")
        posting = Posting.objects.get(pk=posting.pk)
        return {
            "seed": 3, "options": options, "tape": tape, "submissions": state["submissions"],
            "codes": posting.codes, "posting": posting.external_id,
        }  # fmt: skip

    def on_prolific_later(self, sim: Any, posting: Any, people: dict[str, Any]) -> None:
        from django.core.management import call_command

        for name, until, count in (("vic", "trials", 7), ("wim", "consent", 0), ("xia", "trials", None)):
            people[name].arrive(until)
            if until == "trials":
                people[name].answer(count)
            self.keep(name, people[name])
            self.halfway[name] |= {"submission": people[name].submission, "exit": "complete"}
        self.settle(yes=False)
        self.lost_answer(sim)
        letter = self.control(sim.url, "message", person=people["sam"].outside, body="My page froze.",
                              posting=posting.external_id)  # fmt: skip
        assert letter["message"]
        offered = {"platform": "prolific", "simulator": sim.url, "by": "grace"}
        call_command("publish", "before", sync=True, stdout=io.StringIO(), **offered)
        self.answered()
        self.withheld()
        people["zoe"].take_part()
        self.handed_in(sim, people["zoe"], posting.codes["complete"])
        body = {"reason": "debrief", "erase": True, "query": people["zoe"].query()}
        assert people["zoe"].call("POST", "/api/session/withdraw/", body).status_code == 200
        people["yve"].arrive()
        people["yve"].answer(6)
        body = {"reason": "", "erase": True, "query": people["yve"].query()}
        assert people["yve"].call("POST", "/api/session/withdraw/", body).status_code == 200
        self.handed_in(sim, people["yve"], posting.codes["withdrawn"])
        self.notified(posting)

    def control(self, url: str, verb: str, **members: Any) -> dict[str, Any]:
        import httpx

        reply = httpx.post(f"{url}/_simulator/{verb}", json=members, timeout=30)
        assert reply.status_code == 200, reply.text
        return dict(reply.json())

    def handed_in(self, sim: Any, person: Any, code: str) -> None:
        self.control(sim.url, "complete", submission=person.submission, code=code)
        self.control(sim.url, "advance", seconds=60)

    def settle(self, *, yes: bool) -> None:
        from django.core.management import call_command

        call_command("settle", "before", yes=yes, by="grace", platform="prolific", stdout=io.StringIO())

    def lost_answer(self, sim: Any) -> None:
        """Pays with a platform that does what it is told and does not answer."""
        from django.core.management import CommandError

        from crowd.models import Payout

        class Lost(ConnectionError):
            pass

        def cut(call: Any) -> None:
            if call.path.endswith("/pay/") and call.effect:
                sim.faults.down = True
                raise Lost

        sim.before_reply.append(cut)
        try:
            self.settle(yes=True)
        except CommandError as error:
            print("settle:", error)
        sim.before_reply.remove(cut)
        sim.faults.down = False
        assert Payout.objects.filter(state="unknown").exists()

    def answered(self) -> None:
        from django.core.management import call_command

        from crowd.models import Message

        letter = Message.objects.filter(state="received").first()
        assert letter is not None
        url = f"/studies/before/messages/{letter.pk}/answer/"
        assert self.desk.post(url, {"body": "You will be paid."}).status_code == 302
        call_command("send_messages", "before", stdout=io.StringIO())

    def notified(self, posting: Any) -> None:
        """The platform says that something has changed."""
        from crowd.accounts import REHEARSAL
        from django.utils import timezone

        from crowd.models import Notice
        from crowd.platforms.prolific.notices import signature

        told = {"event_type": "study.status.change", "resource_id": posting.external_id, "status": "ACTIVE"}
        body, stamp = json.dumps(told).encode(), str(int(timezone.now().timestamp()))
        headers = {
            "X-Prolific-Request-Timestamp": stamp,
            "X-Prolific-Request-Signature": signature(REHEARSAL, stamp, body),
            "X-Event-ID": "event-1",
        }
        self.desk.post("/hooks/prolific/", body, content_type="application/json", headers=headers)
        assert Notice.objects.exists()

    def withheld(self) -> None:
        """A named person denies what is due for the screening."""
        from crowd.models import Payout

        row = Payout.objects.get(state="due", kind="screen_out")
        body = {"act": "withhold", "reason": "Somebody else sat at this place, as they wrote."}
        assert self.desk.post(f"/studies/before/money/withhold/{row.pk}/", body).status_code == 302

    def decided_by_hand(self) -> None:
        from experiments.models import Session

        ned = Session.objects.get(comment="A brother helped.")
        body = {"act": "leave_out", "reason": "Wrote that a brother helped."}
        assert self.desk.post(f"/studies/before/exclusions/{ned.pk}/", body).status_code == 302
        ned.refresh_from_db()
        assert ned.excluded
        # A person who came by a plain address and never continued is marked as gone after a while.
        gone = self.person("gone")
        gone.arrive()
        gone.answer(2)
        from experiments.sessions import mark_left

        assert mark_left(gone.session())

    def closed(self) -> None:
        """A study that is over: unsealed, reported, exported."""
        from django.core.management import call_command

        for number in range(5):
            self.person(f"closed-{number}", slug="closed").take_part()
        call_command("study_close", "closed", by="grace", reason="Enough people.", stdout=io.StringIO())

    def exported(self) -> None:
        from django.core.management import call_command

        for slug in ("before", "closed"):
            for origin in ("human", "simulated"):
                folder = self.out / "reports" / f"{slug}-{origin}"
                if slug == "closed" and origin == "simulated":
                    continue
                said = io.StringIO()
                call_command("report", slug, origin=origin, out=folder, stdout=said)
                (folder / "printed.txt").write_text(said.getvalue())
            seal = {"unseal_as": "Grace", "reason": "The test of the rebuilding."} if slug == "before" else {}
            call_command("export", slug, out=self.out / "exports" / slug, stdout=io.StringIO(), **seal)

    def recorded(self) -> dict[str, Any]:
        """What the old server told the page of a person in the middle of a block, word by word."""
        person = self.person("oda")
        person.arrive()
        person.answer(5)
        page = person.client.get(f"/join/before/?{person.query()}", headers={"X-Forwarded-Proto": "https"})
        joined = person.join()
        state = person.call("GET", "/api/session/")
        media = {}
        text = joined.content.decode()
        for url in sorted(set(re.findall(r"/m/[A-Za-z0-9_\-]+", text))):
            reply = person.client.get(url, headers={"X-Forwarded-Proto": "https"})
            assert reply.status_code == 200, url
            media[url] = reply["Content-Type"]
        self.keep("oda", person)
        return {
            "query": person.query(), "page": page.content.decode(), "joined": joined.json(),
            "state": state.json(), "media": media,
        }  # fmt: skip

    def pictures(self) -> None:
        """The stored files that people in the middle may still ask for."""
        from django.conf import settings

        from experiments.api.state import media_files
        from experiments.models import Session

        going_on = Session.objects.filter(pk__in=[person["session"] for person in self.halfway.values()])
        files = {file for session in going_on for _, file in media_files(session)}
        with ZipFile(self.out / "store.zip", "w", ZIP_STORED) as archive:
            for name in sorted(files):
                archive.writestr(ZipInfo(name), (Path(settings.STORAGE_URL) / name).read_bytes())

    def keep(self, name: str, person: Any) -> None:
        session = person.session()
        person.refresh()
        self.halfway[name] = {
            "study": person.slug,
            "platform": person.platform,
            "query": person.query(),
            "token": person.token,
            "session": str(session.pk),
            "step": person.state["step"],
            "state": session.state,
            "answered": session.responses.count(),
            "matches": matches_of(session),
        }


if __name__ == "__main__":
    main(Path(sys.argv[1]))
