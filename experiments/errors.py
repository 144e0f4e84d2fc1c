"""What can go wrong while a study is defined, opened or taken. Each message names the value, the limit, the
remedy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a definition: its key, the value, the limit and the remedy; `place` is its line."""

    key: str
    value: str
    limit: str
    remedy: str
    place: str = ""

    def __str__(self) -> str:
        value = f" = {self.value}" if self.value else ""
        where = f"{self.place}: " if self.place else ""
        return f"{where}{self.key}{value}: {self.limit}. {self.remedy}"


def sentence(text: str) -> str:
    """The text with a full stop, unless it ends in a mark."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


class StudyError(Exception):
    """A study cannot be used as it is."""


class InvalidStudy(StudyError):
    """A study file has mistakes; the message lists all of them."""

    def __init__(self, source: str, problems: list[Problem]) -> None:
        self.source = source
        self.problems = problems
        count = len(problems)
        lines = "\n".join(f"  {problem}" for problem in problems)
        super().__init__(f"{source} has {count} mistake{'s' if count != 1 else ''}:\n{lines}")


class FrozenStudy(StudyError):
    """An open study never changes."""


class SessionError(Exception):
    """A request of a participant's page cannot be served. `status` and `code` are what the wire promises."""

    status = 400
    code = "invalid"
    remedy = ""

    def __init__(
        self, message: str, *, fields: dict[str, str] | None = None, next_position: int | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields or {}
        self.next_position = next_position
        self.exit: dict[str, object] | None = None


class InvalidRequest(SessionError):
    """A value does not fit."""

    remedy = "Correct the named fields and send the request again."


class NoSession(SessionError):
    """The token is unknown, or another tab has taken over."""

    status = 401
    code = "no_session"
    remedy = "Open the study again from the page that led you here."


class NotAdmitted(SessionError):
    """This person may not take part here."""

    status = 403
    code = "not_admitted"
    remedy = "Return to the page that led you here."


class NoStudy(SessionError):
    """There is no open study of this name here."""

    status = 404
    code = "no_study"
    remedy = "Check the address, or write to the person who sent it."


class SessionFinished(SessionError):
    """The session has ended; nothing more can be stored."""

    status = 409
    code = "finished"
    remedy = "Nothing needs to be done."


class TakenPart(SessionError):
    """The same person has already taken part."""

    status = 409
    code = "taken_part"
    remedy = "Each person may take part as often as the study allows."


class OutOfTurn(SessionError):
    """A response came before the one that precedes it, or a step before its turn."""

    status = 409
    code = "out_of_turn"
    remedy = "Ask for the session again and go on from `next`."


class Contradiction(SessionError):
    """Another value is already stored for this trial; the stored one stands."""

    status = 409
    code = "contradiction"
    remedy = "Drop the copy; the stored answer stands."


class TextChanged(SessionError):
    """The page that was answered is not the page that is asked now."""

    status = 409
    code = "text_changed"
    remedy = "Ask for the session again and show the page that it holds."


class Incomplete(SessionError):
    """Something is still to be answered."""

    status = 409
    code = "incomplete"
    remedy = "Ask for the session again and go on from `next`."


class StudyFull(SessionError):
    """No place is free."""

    status = 410
    code = "full"
    remedy = "You may close this page; you have not lost anything."


class TooMany(SessionError):
    """Too much comes from one address."""

    status = 429
    code = "too_many"

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.remedy = f"Wait {retry_after_s} s and send the request again; nothing is lost."


class TooLarge(SessionError):
    """The body is larger than may be sent."""

    status = 413
    code = "too_large"
    remedy = "Send fewer responses at once."
