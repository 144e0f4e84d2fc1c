"""The worker's pages: the frame that shows the requester's page, and the target of its form.

`/worker/<hit>` is the preview, `/worker/<hit>?assignment=…` the accepted work; `&sandbox=strict` leaves out
allow-same-origin. Real tokens of the platform's frame are not documented.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from urllib.parse import parse_qsl, quote

from crowd.rehearsal.mturk.control import PREVIEW_ID, RESERVED, TurkControl, preview_url
from crowd.rehearsal.mturk.question_xml import read_question
from crowd.rehearsal.mturk.records import TurkHit
from crowd.rehearsal.mturk.wire import dollars
from crowd.rehearsal.platform_control import CannotBe
from crowd.rehearsal.serving import Answer, IncomingRequest

SUBMIT = "/mturk/externalSubmit"
FORM = "application/x-www-form-urlencoded"
SANDBOX = {"": "allow-scripts allow-forms allow-same-origin", "strict": "allow-scripts allow-forms"}
HEIGHT = 700
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<style>body{{font:16px/1.5 system-ui,sans-serif;margin:1rem}}iframe{{width:100%;border:1px solid #999}}
form{{display:inline}}</style>
<p><strong>Simulated Mechanical Turk</strong>: no real money, no real people.</p>
{body}
</html>
"""


class Pages:
    """Answers the requests of workers' browsers."""

    def __init__(self, control: TurkControl) -> None:
        self.control, self.world = control, control.world

    def answer(self, request: IncomingRequest) -> Answer:
        with self.world.lock:
            try:
                return self._route(request)
            except CannotBe as error:
                return _page(400, "Refused", f'<p id="refused">{escape(str(error.detail))}</p>')

    def _route(self, request: IncomingRequest) -> Answer:
        parts = request.path.strip("/").split("/")
        if request.path == SUBMIT and request.method == "POST":
            return self._submit(request)
        if parts[0] == "worker" and len(parts) == 2 and request.method == "GET":
            return self._frame(self.world.hit(parts[1]), request)
        if parts[0] == "worker" and len(parts) == 3 and request.method == "POST":
            return self._button(self.world.hit(parts[1]), parts[2], request)
        if parts[0] == "projects" and parts[2:] == ["tasks"] and request.method == "GET":
            return self._group(parts[1])
        return _page(404, "Not found", "<p>There is no such page.</p>")

    def _frame(self, hit: TurkHit, request: IncomingRequest) -> Answer:
        assignment = _query_value(request, "assignment")
        sandbox = SANDBOX.get(_query_value(request, "sandbox"), SANDBOX["strict"])
        question = read_question(hit.question)
        if assignment and assignment != PREVIEW_ID:
            work = self.control.find(assignment)
            if work.hit is not hit or work.status != "Accepted":
                raise CannotBe(f"Assignment {work.id} is not held by anybody.")
            url, buttons = self.control.arrival(work)["url"], _form(hit, "return", work.submission, "Return")
        else:
            url, buttons = preview_url(hit), _form(hit, "accept", _query_value(request, "worker"), "Accept")
        body = (
            f"<h1>{escape(hit.kind.title)}</h1><p>{dollars(hit.kind.reward)} USD {buttons}</p>"
            f'<iframe id="task" title="Task" sandbox="{sandbox}" height="{question.height or HEIGHT}"'
            f' src="{escape(url)}"></iframe>'
        )
        return _page(200, hit.kind.title, body)

    def _button(self, hit: TurkHit, verb: str, request: IncomingRequest) -> Answer:
        """Accept and Return, as the worker presses them."""
        who = dict(_form_fields(request)).get("who", "")
        if verb == "accept":
            taken = self.control.take(posting=hit.id, person=who)
            return _redirect(f"/worker/{hit.id}?assignment={quote(taken['submission'])}")
        if verb == "return":
            self.control.give_back(who)
            return _redirect(f"/worker/{hit.id}")
        return _page(404, "Not found", "<p>There is no such button.</p>")

    def _group(self, group: str) -> Answer:
        for hit in self.world.hits.values():
            if group == hit.kind.group and hit.status(self.world.now) == "Assignable":
                return _redirect(f"/worker/{hit.id}")
        return _page(404, "Nothing to do", "<p>There are no HITs of this group available.</p>")

    def _submit(self, request: IncomingRequest) -> Answer:
        """The form of the requester's page. Reserved names are no answers and are not stored."""
        fields = _form_fields(request)
        assignment = next((value for name, value in fields if name == "assignmentId"), "")
        if not assignment:
            raise CannotBe("The form has no field assignmentId.")
        if assignment == PREVIEW_ID:
            raise CannotBe("This is a preview: accept the HIT before you submit.")
        answers = [(name, value) for name, value in fields if name not in RESERVED]
        if not answers:
            raise CannotBe("The form has no field besides assignmentId.")
        self.world.submit(self.control.find(assignment), answers)
        return _page(200, "Submitted", '<p id="submitted">Submitted</p>')


def _form_fields(request: IncomingRequest) -> Sequence[tuple[str, str]]:
    if request.headers.get("content-type", "").partition(";")[0].strip() != FORM:
        raise CannotBe(f"The form must be sent as {FORM}.")
    try:
        return parse_qsl(request.body.decode(), keep_blank_values=True, max_num_fields=1000)
    except ValueError as error:
        raise CannotBe("The form cannot be read.") from error


def _form(hit: TurkHit, verb: str, who: str, label: str) -> str:
    return (
        f'<form method="post" action="/worker/{hit.id}/{verb}">'
        f'<input type="hidden" name="who" value="{escape(who)}"><button id="{verb}">{label}</button></form>'
    )


def _query_value(request: IncomingRequest, name: str) -> str:
    return (request.query.get(name) or [""])[0]


def _page(status: int, title: str, body: str) -> Answer:
    text = PAGE.format(title=escape(title), body=body)
    return Answer(status, text.encode(), {"Content-Type": "text/html; charset=utf-8"})


def _redirect(to: str) -> Answer:
    return Answer(303, b"", {"Location": to})
