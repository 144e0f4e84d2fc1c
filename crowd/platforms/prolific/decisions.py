"""Approving, rejecting, asking to return. Each reads the state, acts, and reads back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from crowd.platforms.base import (
    ALL_REFUSED,
    BadOptions,
    ListedSubmission,
    PlatformError,
    PlatformPosting,
    Settlement,
    Unread,
)
from crowd.platforms.prolific.specs import estimated_minutes
from crowd.platforms.prolific.submissions_and_messages import Submissions, state_of
from crowd.platforms.prolific.wire import PAUSES_S, segment

CHUNK = 500
MESSAGE_MIN = 100
CATEGORIES = (
    "TOO_QUICKLY", "TOO_SLOWLY", "FAILED_INSTRUCTIONS", "INCOMP_LONGITUDINAL", "FAILED_CHECK", "LOW_EFFORT",
    "MALINGERING", "NO_CODE", "BAD_CODE", "NO_DATA", "UNSUPP_DEVICE", "OTHER",
)  # fmt: skip
SHORT_MINUTES = 5
CHECKS_SHORT, CHECKS_LONG = 1, 2


class ProlificDecisions(Submissions):
    """Approves, rejects and asks to return, for one account."""

    def approve(self, posted: PlatformPosting, submissions: Sequence[str]) -> list[Settlement]:
        """Only what awaits review is approved. Prolific does it in the background, so it is read again a few
        times; what is still undecided then is `unknown` and can be asked again."""
        listed = self._list_submissions(posted)
        open_ones = [each for each in dict.fromkeys(submissions) if _state(listed, each) == "awaiting"]
        refusals = self._send_approvals(open_ones) if open_ones else {}
        if open_ones:
            try:
                listed = self._await_decisions(posted, [each for each in open_ones if each not in refusals])
            except PlatformError as error:
                # They were sent: the next call reads their state.
                refusals = {each: PlatformError(str(error), uncertain=True) for each in open_ones} | refusals
        return [_settlement_of(each, listed.get(each), refusals.get(each)) for each in submissions]

    def reject(self, posted: PlatformPosting, submission: str, message: str, category: str) -> None:
        check_rejection(message, category)
        raw = str(self.detail(posted, submission).get("status"))
        if state_of(raw) == "rejected":
            return
        if state_of(raw) != "awaiting":
            raise PlatformError(f"It cannot be rejected: Prolific says {raw}.", permanent=True)
        self.wire.send(
            "POST",
            f"submissions/{segment(submission)}/transition/",
            {"action": "REJECT", "message": message.strip(), "rejection_category": category},
            safe=True,
        )
        for pause in (0.0, *PAUSES_S):
            if pause:
                self.wire.wait(pause)
            raw = str(self.detail(posted, submission).get("status"))
            if state_of(raw) == "rejected":
                return
        raise PlatformError(
            f"Prolific still says {raw} after the rejection. Look again later.", uncertain=True
        )

    def request_return(self, posted: PlatformPosting, submission: str, reason: str) -> None:
        """Asks once; a person who was asked before, or has returned, is not asked again."""
        known = self.detail(posted, submission)
        state = state_of(known.get("status"))
        if known.get("return_requested") or state == "returned":
            return
        if state not in ("active", "awaiting"):
            raise PlatformError(
                f"Nothing can be returned: Prolific says {known.get('status')}.", permanent=True
            )
        self.wire.send(
            "POST",
            f"submissions/{segment(submission)}/request-return/",
            {"request_return_reasons": [reason.strip() or "Other."]},
        )

    def rejection_grounds(self, expected_minutes: float, failed_checks: int) -> str:
        """Prolific's rule on fair attention checks, applied to the time announced to participants."""
        minutes = estimated_minutes(expected_minutes)
        needed = CHECKS_SHORT if minutes < SHORT_MINUTES else CHECKS_LONG
        if failed_checks < needed or not math.isfinite(expected_minutes):
            return ""
        length = "under" if needed == CHECKS_SHORT else "of"
        return (
            f"Prolific permits a rejection after {needed} failed fair attention "
            f"check{'s' if needed > 1 else ''} in a study {length} {SHORT_MINUTES} minutes"
            f"{' or more' if needed > 1 else ''}; {failed_checks} failed here."
        )

    def _list_submissions(self, posted: PlatformPosting) -> dict[str, ListedSubmission]:
        rows = self.submissions(posted)
        return {listed.submission: listed for listed in rows if not isinstance(listed, Unread)}

    def _await_decisions(self, posted: PlatformPosting, sent: Sequence[str]) -> dict[str, ListedSubmission]:
        """The list as soon as none of these awaits review any more, or after the last pause."""
        for pause in PAUSES_S:
            listed = self._list_submissions(posted)
            if not any(_state(listed, submission) in ("awaiting", "unknown") for submission in sent):
                return listed
            self.wire.wait(pause)
        return self._list_submissions(posted)

    def _send_approvals(self, open_ones: Sequence[str]) -> dict[str, PlatformError]:
        """Sends them in chunks; returns which were refused, and why. Raises if nothing at all was sent."""
        refusals: dict[str, PlatformError] = {}
        chunks = [list(open_ones[start : start + CHUNK]) for start in range(0, len(open_ones), CHUNK)]
        is_sent = False
        while chunks:
            chunk = chunks.pop(0)
            try:
                self.wire.send("POST", "submissions/bulk-approve/", {"submission_ids": chunk}, safe=True)
                is_sent = True
            except PlatformError as error:
                if not error.permanent and not error.uncertain and not is_sent and not refusals:
                    raise
                if not error.permanent:
                    rest = [each for part in (chunk, *chunks) for each in part]
                    return refusals | dict.fromkeys(rest, error)
                if len(chunk) == 1 or error.of_account:
                    refusals |= dict.fromkeys(chunk, error)
                else:
                    # One person's trouble is one person's: to approve twice pays once.
                    middle = len(chunk) // 2
                    chunks[:0] = [chunk[:middle], chunk[middle:]]
        if len(refusals) == len(open_ones) >= ALL_REFUSED:
            # Refused to all: the cause is the account's.
            for refusal in refusals.values():
                refusal.of_account = True
        return refusals


def _state(listed: Mapping[str, ListedSubmission], submission: str) -> str:
    return listed[submission].state if submission in listed else ""


def _settlement_of(
    submission: str, listed: ListedSubmission | None, refusal: PlatformError | None
) -> Settlement:
    if listed is None:
        return Settlement(submission, "failed", "Prolific does not list this submission in the study.")
    if listed.state == "approved":
        return Settlement(submission, "sent")
    if listed.state == "unknown":
        return Settlement(submission, "unknown", f"Prolific says {listed.raw}. Look again later.")
    if listed.state != "awaiting":
        return Settlement(submission, "failed", f"It cannot be approved: Prolific says {listed.raw}.")
    if refusal is not None and refusal.permanent and not refusal.uncertain:
        return Settlement(submission, "failed", str(refusal), is_refused=not refusal.of_account)
    return Settlement(
        submission, "unknown", str(refusal or "Prolific has not decided yet. Look again later.")
    )


def check_rejection(message: str, category: str) -> None:
    """Raises BadOptions for what Prolific would refuse, before any call."""
    length = len(message.strip())
    if length < MESSAGE_MIN:
        raise BadOptions(
            f"The message has {length} characters; Prolific asks for {MESSAGE_MIN} or more. Name "
            "what was failed."
        )
    if category not in CATEGORIES:
        raise BadOptions(
            f"{category!r} is no ground that Prolific knows. Choose one of {', '.join(CATEGORIES)}."
        )
