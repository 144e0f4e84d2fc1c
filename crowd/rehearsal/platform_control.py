"""What happens on a simulated platform outside its API: people act, time passes, faults occur. Each is a
verb, called in process, or as POST /_simulator/<verb> with its arguments as JSON."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any, ClassVar

from crowd.rehearsal.clock import Clock
from crowd.rehearsal.faults import Faults
from crowd.rehearsal.serving import Answer, IncomingRequest, as_json

PREFIX = "/_simulator/"
Json = dict[str, Any]


class CannotBe(Exception):
    """What was asked is impossible in the present state, and nothing happened. `detail` says why, `status` is
    that of the answer over HTTP."""

    status = 409

    def __init__(self, detail: object, text: str = "") -> None:
        super().__init__(text or detail)
        self.detail = detail


class PlatformVerbs:
    """The verbs that all platforms have in the same way; VERBS names all of one, as an address does."""

    VERBS: ClassVar[tuple[str, ...]]
    world: Any
    faulty: Faults

    def __call__(self, verb: str, **members: Any) -> Json:
        """A verb by its name in the address."""
        return self._method(verb)(**members)

    def _method(self, verb: str) -> Callable[..., Json]:
        method: Callable[..., Json] = getattr(self, "give_back" if verb == "return" else verb)
        return method

    def advance(self, seconds: float) -> Json:
        clock: Clock = self.world.clock
        clock.advance(seconds)
        return {"now": clock.now().isoformat()}

    def faults(self, **changes: Any) -> Json:
        """Sets the share of failing calls and the kinds that are drawn, takes the platform down, forces the
        kinds of the coming calls, and the delay of a late effect (faults.py)."""
        return self.faulty.set(**changes)

    def answer(self, request: IncomingRequest) -> Answer:
        """One verb over HTTP: 200 with its result, 404 unknown, 400 wrong arguments, 409 not possible."""
        verb = request.path.removeprefix(PREFIX).strip("/")
        if verb not in self.VERBS or request.method != "POST":
            return as_json({"error": f"POST one of: {', '.join(self.VERBS)}."}, 404)
        try:
            arguments = json.loads(request.body or b"{}")
            inspect.signature(self._method(verb)).bind(**arguments)
            return as_json(self(verb, **arguments))
        except CannotBe as no:
            return as_json({"error": no.detail}, no.status)
        except (TypeError, ValueError, ArithmeticError) as error:
            return as_json({"error": f"{verb}: {error}"}, 400)
