"""Who may do what in a study: every address of the dashboard for every kind of login, and what roles keep."""

import re
from collections.abc import Iterator
from io import StringIO
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction
from django.test import Client, RequestFactory
from django.urls import URLResolver, get_resolver, resolve

from analysis.stored_reports.refresh import refresh_report
from crowd.ground.roles import roles_of
from crowd.models import Message, StudyRole, Submission
from crowd.rehearsal.demo.server import print_addresses
from experiments.models import Slot, Study
from experiments.terminal import Terminal
from stimuli.models import Stimulus
from stimuli.store.media_access import current_store
from tests.analysis import stored
from tests.crowd import paid
from tests.crowd.logins import login, posting_of

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("undrawn")]
ROLES = ("view", "run", "pay", "unseal")
ROOT = "/studies/wolf-or-husky/"
REASON = "The ethics board asks for it, and it is urgent."
ALL = "view run pay unseal"

Verb = tuple[str, int]
TABLE: dict[str, tuple[Verb, Verb]] = {
    "overview": ((ALL, 200), (ALL, 405)),
    "live": ((ALL, 200), (ALL, 405)),
    "live_drawing": ((ALL, 200), (ALL, 405)),
    "quality": ((ALL, 200), (ALL, 405)),
    "quality_live": ((ALL, 200), (ALL, 405)),
    "quality_values": ((ALL, 200), (ALL, 405)),
    "quality_try": ((ALL, 405), (ALL, 302)),
    "participants": ((ALL, 200), (ALL, 405)),
    "save_filter": ((ALL, 405), (ALL, 302)),
    "remove_filter": ((ALL, 405), (ALL, 302)),
    "compare": ((ALL, 200), (ALL, 405)),
    "raters": ((ALL, 200), (ALL, 405)),
    "participant": ((ALL, 200), (ALL, 405)),
    "person_note": (("run", 405), ("run", 302)),
    "exclusions": ((ALL, 200), (ALL, 405)),
    "exclude": ((ALL, 200), ("run", 302)),
    "stimuli": ((ALL, 200), (ALL, 405)),
    "acknowledge": (("run", 405), ("run", 302)),
    "picture": ((ALL, 200), (ALL, 405)),
    "preview": ((ALL, 200), (ALL, 405)),
    "recruitment": ((ALL, 200), (ALL, 405)),
    "agreement": ((ALL, 200), (ALL, 405)),
    "release_places": (("run", 405), ("run", 302)),
    "work": ((ALL, 200), ("run", 302)),
    "posting_cap": (("pay", 200), ("pay", 302)),
    "posting_reward": (("pay", 200), ("pay", 400)),
    "posting_add": (("run", 200), ("run", 400)),
    "posting_close": (("run", 200), ("run", 302)),
    "posting_act": (("run", 405), ("run", 302)),
    "money": ((ALL, 200), (ALL, 405)),
    "settle": (("pay", 405), ("pay", 302)),
    "withhold": (("pay", 200), ("pay", 302)),
    "books": ((ALL, 200), (ALL, 405)),
    "hand": ((ALL, 200), (ALL, 405)),
    "statement": ((ALL, 200), ("pay", 400)),
    "proposals": ((ALL, 200), ("pay", 400)),
    "letters": ((ALL, 200), (ALL, 405)),
    "answer": (("run", 405), ("run", 302)),
    "answered": (("run", 405), ("run", 302)),
    "report": ((ALL, 200), (ALL, 405)),
    "unseal": (("unseal", 405), ("unseal", 302)),
    "refresh": ((ALL, 405), (ALL, 302)),
    "methods": ((ALL, 200), (ALL, 405)),
    "report_page": ((ALL, 200), (ALL, 405)),
    "downloads": ((ALL, 200), (ALL, 405)),
    "new_key": ((ALL, 405), (ALL, 200)),
    "key_end": ((ALL, 405), (ALL, 302)),
    "export": ((ALL, 405), (ALL, 409)),
    "definition": ((ALL, 200), (ALL, 405)),
    "report_json": ((ALL, 200), (ALL, 405)),
    "log": ((ALL, 200), (ALL, 405)),
    "roles": ((ALL, 200), ("", 0)),
    "build": (("run", 405), ("run", 302)),
    "close": (("run", 200), ("", 0)),
}
"""Address -> which roles may GET and POST it, and what they get. Every other role gets 403, an account
without a role 404, a request without a login 302. Setting roles takes an administrator, closing early two
roles."""
POSTED: dict[str, dict[str, str]] = {
    "exclude": {"act": "leave_out", "reason": REASON},
    "acknowledge": {"reason": REASON},
    "release_places": {"sender": "a" * 32},
    "work": {"act": "note", "text": REASON},
    "posting_cap": {"amount": "500.00", "reason": REASON},
    "posting_reward": {"reason": REASON},
    "posting_add": {"count": "1"},
    "settle": {"total": "1.40"},
    "withhold": {"act": "withhold", "reason": REASON},
    "statement": {"act": "accept", "reason": REASON},
    "answer": {"body": "Thank you, we look at it."},
    "unseal": {"reason": REASON},
    "export": {"origin": "human", "cleaned": "raw"},
    "new_key": {"name": "nightly"},
    "roles": {"user": "view", "roles": "pay"},
    "close": {"reason": REASON},
}
"""Forms that would take effect for a login that may send them."""
WITHOUT_STUDY: dict[str, dict[str, tuple[int, int]]] = {
    "studies": {"nobody": (302, 302), "login": (200, 405)},
    "login": {"nobody": (200, 200), "login": (302, 302)},
    "logout": {"nobody": (405, 302), "login": (405, 302)},
    "service": {"nobody": (302, 302), "login": (200, 405)},
    "enter": {"nobody": (410, 410), "login": (410, 410)},
}
"""Address -> without and with a login, what GET and POST get."""


def addresses() -> dict[str, str]:
    """Every address of the dashboard, from Django's own resolver: name -> pattern."""
    dashboard = next(
        entry
        for entry in get_resolver().url_patterns
        if isinstance(entry, URLResolver) and entry.app_name == "dashboard"
    )
    return dict(_below(dashboard, ""))


def _below(resolver: URLResolver, start: str) -> Iterator[tuple[str, str]]:
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            yield from _below(entry, f"{start}{entry.pattern}")
        else:
            yield str(entry.name), f"{start}{entry.pattern}"


def other_study() -> Study:
    return Study.objects.create(
        slug="other", title="Theirs", paradigm="meta_predictor", definition={}, digest="d", seed=1
    )


@pytest.fixture
def world(db: None, store_folder: Any) -> dict[str, Any]:
    """A sealed study with something at every address; the values that fill the addresses."""
    study = paid.paying()
    people, posting = stored.cast(study), posting_of(study)
    row = Submission.objects.create(
        posting=posting, submission_hash="a" * 64, session=people["ada"], state="active"
    )
    payout = paid.payout(posting, people["ada"], kind="base", cents=140, currency="GBP", reason="Passed.")
    message = Message.objects.create(posting=posting, state="received", body="Hello")
    stimulus = Stimulus.objects.filter(renderings__item__study=study).order_by("pk")[0]
    current_store().put("pictures/aa/picture.png", b"\x89PNG")
    Stimulus.objects.filter(pk=stimulus.pk).update(image_file="pictures/aa/picture.png")
    assert refresh_report(study, "human").sealed
    return {
        **{"slug": study.slug, "session": people["ada"].pk, "stimulus": stimulus.pk, "kind": "image"},
        **{"posting": posting.pk, "act": "pause", "submission": row.pk, "payout": payout.pk},
        **{"letter": message.pk, "origin": "human", "token": "x", "key": 1, "number": 1},
    }


def path_of(pattern: str, values: dict[str, Any]) -> str:
    path = f"/{pattern}"
    for name, value in values.items():
        for kind in ("slug", "int", "uuid", "str"):
            path = path.replace(f"<{kind}:{name}>", str(value))
    return path


def status(client: Client, verb: str, path: str, data: dict[str, str]) -> int:
    """What a request gets; what it changed is taken back, and the login stays."""
    cookies = dict(client.cookies)
    with transaction.atomic():
        reply = getattr(client, verb.lower())(path, data)
        transaction.set_rollback(True)
    client.cookies.clear()
    client.cookies.update(cookies)
    return int(reply.status_code)


def test_it_states_what_every_address_asks_for() -> None:
    assert set(addresses()) == set(TABLE) | set(WITHOUT_STUDY)
    for name, pattern in addresses().items():
        assert ("<slug:slug>" in pattern) == (name in TABLE), name


def test_it_answers_every_login_by_its_role(world: dict[str, Any]) -> None:
    clients = {role: login(role, role) for role in ROLES}
    strangers = {
        "nobody": (Client(), 302),
        "a plain account": (login("plain"), 404),
        "another study's account": (login("other", *ROLES, study=other_study()), 404),
    }
    wrong = []
    for name, verbs in TABLE.items():
        path = path_of(addresses()[name], world)
        for verb, (allowed, expected) in zip(("GET", "POST"), verbs, strict=True):
            data = POSTED.get(name, {}) if verb == "POST" else {"count": "1"}
            cases = {kind: (client, refused) for kind, (client, refused) in strangers.items()}
            cases |= {role: (clients[role], expected if role in allowed.split() else 403) for role in ROLES}
            for kind, (client, wanted) in cases.items():
                got = status(client, verb, path, data)
                if got != wanted:
                    wrong.append(f"{verb} {name} by {kind}: {got}, not {wanted}")
                if verb == "POST":
                    continue
                # Who may see a page may have its head: only a refusal could be forgotten, and then for all
                # who are refused with a login.
                is_asked = kind in {"nobody", "a plain account"} or kind == refused_role(allowed)
                if wanted != 200 and is_asked and status(client, "HEAD", path, data) != got:
                    wrong.append(f"HEAD {name} by {kind}: not {got}")
                # A view that took it would take it of a login that may see the page, or of everybody.
                if kind in {"nobody", "a plain account", *allowed.split()[:1]}:
                    other = status(client, "PUT", path, {})
                    if other not in (302, 403, 404, 405) or (other == 302) != (kind == "nobody"):
                        wrong.append(f"PUT {name} by {kind}: {other}")
    assert not wrong, "\n".join(wrong)


def refused_role(allowed: str) -> str:
    """One of those without a right, if there is one."""
    return next((role for role in ROLES if role not in allowed.split()), "")


def test_it_shows_no_form_and_no_link_that_a_login_may_not_use(world: dict[str, Any]) -> None:
    wrong, count = [], 0
    for role in ROLES:
        client = login(role, role)
        for name, ((allowed, expected), _) in TABLE.items():
            if role not in allowed.split() or expected != 200 or name == "picture":
                continue
            page = client.get(path_of(addresses()[name], world), {"count": "1"})
            for verb, path in offered_by(page.content.decode(), page.request["PATH_INFO"]):
                target = str(resolve(path).url_name)
                may = TABLE[target][verb == "POST"][0].split() if target in TABLE else [role]
                # The forms about one submission are of two roles, each with acts of its own.
                may += ["pay"] if (target, verb) == ("work", "POST") else []
                count += 1
                if role not in may:
                    wrong.append(f"{name} offers {role}: {verb} {target}")
    assert not wrong, "\n".join(sorted(set(wrong)))
    assert count > 1000


@pytest.mark.parametrize("state", ["draft", "kept"])
def test_it_offers_the_next_step_to_those_who_may_take_it(study: Study, settings: Any, state: str) -> None:
    settings.CELERY_BROKER_URL = "redis://nowhere"
    if state == "draft":
        Study.objects.update(state="draft")
        Stimulus.objects.update(state="missing")
    else:
        stored.full(study)
    target = "build" if state == "draft" else "close"
    for role in ROLES:
        page = login(role, role).get(f"{ROOT}log/").content.decode()
        offered = {str(resolve(path).url_name) for _, path in offered_by(page, f"{ROOT}log/")}
        assert (target in offered) == (role == "run"), role
        assert ("with the role “run”" in page) == (role != "run"), role


def offered_by(page: str, path: str) -> Iterator[tuple[str, str]]:
    """Verb and path of every link and form of a page."""
    for href in re.findall(r'<a [^>]*href="(/[^"?#]*)', page):
        yield "GET", href
    for tag in re.findall(r"<form [^>]*>", page):
        action = re.search(r'action="([^"?]*)"', tag)
        yield ("POST" if 'method="post"' in tag else "GET"), action[1] if action else path


@pytest.mark.parametrize("name", WITHOUT_STUDY)
def test_it_asks_no_role_outside_of_studies(study: Study, name: str) -> None:
    path = path_of(addresses()[name], {"token": "x"})
    for kind, (got, posted) in WITHOUT_STUDY[name].items():
        client = Client() if kind == "nobody" else login("plain")
        assert (status(client, "GET", path, {}), status(client, "POST", path, {})) == (got, posted), kind


def test_it_tells_a_stranger_no_more_than_of_a_study_that_is_not_there(study: Study) -> None:
    client = login("plain")
    there, missing = client.get(ROOT), client.get("/studies/no-such-study/")
    assert there.status_code == missing.status_code == 404
    drawn = re.compile(rb'(?<=name="csrfmiddlewaretoken" value=")\w+')
    assert drawn.sub(b"", there.content) == drawn.sub(b"", missing.content)


def test_it_lists_the_studies_in_which_a_login_has_a_role(study: Study) -> None:
    other_study()
    client = login("ada", "pay")
    for page in ("/", ROOT):
        text = client.get(page).content.decode()
        assert "Can you predict the machine?" in text and "Theirs" not in text, page
    text = login("plain").get("/").content.decode()
    assert "No study is open to you" in text and "predict the machine" not in text


def test_it_says_which_role_is_missing_and_who_gives_it(study: Study) -> None:
    User.objects.create_superuser("root")
    User.objects.create_superuser("gone", is_active=False)
    reply = login("ada", "view", "pay").post(f"{ROOT}report/unseal/", {"reason": REASON})
    text = reply.content.decode()
    assert reply.status_code == 403
    assert "ada has no role “unseal” in the study wolf-or-husky" in text and "(root)" in text
    assert "study_role wolf-or-husky ada --add unseal" in text
    study.refresh_from_db()
    assert study.unsealed_at is None and not LogEntry.objects.exists()


def test_it_unseals_in_the_name_of_the_login_alone(study: Study) -> None:
    stored.cast(study)
    forged = {"name": "Prof. Else", "unsealed_by": "Prof. Else", "user": "1", "reason": REASON}
    assert login("eve", "run", "pay").post(f"{ROOT}report/unseal/", forged).status_code == 403
    client = login("ada", "unseal", first_name="Ada", last_name="Lovelace")
    assert "Ada Lovelace" in client.get(f"{ROOT}report/").content.decode()
    client.post(f"{ROOT}report/unseal/", forged)
    study.refresh_from_db()
    assert (study.unsealed_by, study.unsealed_reason) == ("Ada Lovelace", REASON)
    line = LogEntry.objects.get()
    assert line.user.get_username() == "ada" and "Prof. Else" not in line.change_message


def test_it_needs_both_roles_to_close_early_which_breaks_the_seal(study: Study) -> None:
    for number, roles in enumerate((("run",), ("unseal",), ("view", "pay", "run"))):
        reply = login(f"u{number}", *roles).post(f"{ROOT}close/", {"reason": REASON})
        assert reply.status_code == 403, roles
    study.refresh_from_db()
    assert study.state == "open"
    both = login("ada", "run", "unseal", first_name="Ada", last_name="Lovelace")
    both.post(f"{ROOT}close/", {"reason": REASON, "name": "Prof. Else"})
    study.refresh_from_db()
    assert (study.state, study.unsealed_by) == ("closed", "Ada Lovelace")
    assert LogEntry.objects.get().user.get_username() == "ada"


def test_it_closes_after_the_last_place_with_one_role(study: Study) -> None:
    stored.full(study)
    assert not Slot.objects.filter(study=study, pilot=False, kept=False).exists()
    assert login("ada", "run").post(f"{ROOT}close/").status_code == 302
    study.refresh_from_db()
    assert (study.state, study.unsealed_by) == ("closed", "")


@pytest.mark.parametrize(
    ("act", "role"),
    [("grant", "pay"), ("approve", "pay"), ("request_return", "pay"), ("note", "run"), ("write", "run")],
)
def test_it_asks_for_the_role_of_each_act(world: dict[str, Any], act: str, role: str) -> None:
    path = f"{ROOT}recruitment/submissions/{world['submission']}/"
    data = {"act": act, "text": REASON, "amount": "1.00", "kind": "bonus"}
    for number, roles in enumerate((("view",), tuple({"run", "pay", "unseal"} - {role}))):
        assert login(f"u{number}", *roles).post(path, data).status_code == 403
    assert not LogEntry.objects.exists() and not Message.objects.exclude(state="received").exists()
    assert login("ada", role).post(path, data).status_code in (302, 400)


def test_it_lets_only_an_administrator_give_roles_on_the_page(study: Study, desk: Client) -> None:
    ada = login("ada", *ROLES)
    User.objects.create_user("bo")
    given = {"user": "bo", "roles": ["run", "pay"]}
    assert ada.post(f"{ROOT}roles/", given).status_code == 403
    assert not StudyRole.objects.filter(user__username="bo").exists()
    assert desk.post(f"{ROOT}roles/", {**given, "roles": ["king"]}).status_code == 400
    assert desk.post(f"{ROOT}roles/", {**given, "user": "cy"}).status_code == 400
    assert desk.post(f"{ROOT}roles/", given).status_code == 302
    assert roles_of(User.objects.get(username="bo"), study) == {"view", "run", "pay"}
    desk.post(f"{ROOT}roles/", {"user": "bo", "roles": ["run"]})
    desk.post(f"{ROOT}roles/", {"user": "bo"})
    assert roles_of(User.objects.get(username="bo"), study) == frozenset()
    log = list(LogEntry.objects.order_by("pk").values_list("user__username", "change_message"))
    assert log == [
        ("grace", "Gave bo the roles run, pay."),
        ("grace", "Took from bo the role pay."),
        ("grace", "Took from bo the role run."),
    ]
    page = desk.get(f"{ROOT}roles/").content.decode()
    assert "<code>ada</code>" in page and "<code>grace</code>" in page


def test_it_gives_and_takes_roles_by_a_command_in_a_name(study: Study) -> None:
    def said(*words: str) -> str:
        out = StringIO()
        call_command("study_role", "wolf-or-husky", *words, stdout=out)
        return out.getvalue()

    bo = User.objects.create_user("bo")
    assert "No login has a role" in said()
    assert "Gave bo the roles run, pay." in said("bo", "--add", "run", "pay", "--by", "Mary")
    assert "bo: run, pay" in said()
    assert "Nothing was changed" in said("bo", "--add", "run", "--by", "Mary")
    assert "Took from bo the role pay." in said("bo", "--remove", "pay", "--by", "Mary")
    assert roles_of(bo, study) == {"view", "run"}
    log = LogEntry.objects.order_by("pk").values_list("change_message", flat=True)
    assert list(log) == ["Mary: Gave bo the roles run, pay.", "Mary: Took from bo the role pay."]
    for words, why in (
        (("bo", "--add", "pay"), "your name with --by"),
        (("--add", "pay", "--by", "Mary"), "give the login"),
        (("cy", "--add", "pay", "--by", "Mary"), r"There is no login 'cy' \(there are: bo\)"),
        (("bo", "--add", "pay", "--remove", "pay", "--by", "Mary"), "given and taken at once"),
    ):
        with pytest.raises(CommandError, match=why):
            said(*words)


def test_it_keeps_the_roles_of_a_draft_that_is_replaced(study: Study) -> None:
    """A changed file makes a new row of the same slug (experiments/drafting/draft.py)."""
    client, draft = login("ada", "run"), other_study()
    StudyRole.objects.create(study=draft, user=User.objects.get(username="ada"), role="view")
    Study.objects.filter(pk=draft.pk, state="draft").delete()
    assert client.get("/studies/other/roles/").status_code == 404
    assert other_study().pk != draft.pk
    assert "Theirs" in client.get("/").content.decode()


def test_it_opens_the_administration_to_superusers_only(study: Study, desk: Client) -> None:
    staff = login("staff", is_staff=True)
    for path in ("/admin/", "/admin/experiments/session/", "/admin/auth/user/"):
        assert staff.get(path).status_code == 302, path
        assert desk.get(path).status_code == 200, path
    request = RequestFactory().get("/admin/")
    request.user = User.objects.get(username="grace")
    logins = 0
    for model, page in admin.site._registry.items():
        can_delete = page.has_delete_permission(request)
        if model._meta.app_label == "auth":
            logins += model is User and not can_delete
        else:
            may = (page.has_add_permission(request), page.has_change_permission(request), can_delete)
            assert not any(may), model
    assert logins == 1


def test_it_gives_the_login_of_the_demo_everything(study: Study) -> None:
    with Terminal() as terminal:
        print_addresses(study, "http://127.0.0.1:8000", terminal, faults=False)
    assert roles_of(User.objects.get(), study) == set(ROLES)


def test_it_keeps_the_roles_of_one_study_to_it(study: Study) -> None:
    other = other_study()
    ada = User.objects.create_user("ada")
    StudyRole.objects.create(study=other, user=ada, role="unseal")
    assert roles_of(ada, study) == frozenset() and roles_of(ada, other) == {"view", "unseal"}
