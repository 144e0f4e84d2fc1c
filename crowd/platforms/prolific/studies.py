"""A study on Prolific: found or drafted, opened, read, enlarged, stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from crowd.platforms.base import (
    PlatformError,
    PlatformPosting,
    PostingSpec,
    PostingState,
    UnsupportedRequest,
)
from crowd.platforms.prolific.arrival_and_exit import app_of
from crowd.platforms.prolific.money import check_balance, currency_of, whole
from crowd.platforms.prolific.specs import (
    FROZEN,
    cells,
    check_spec,
    completion_codes,
    differences,
    pays_screened,
    project_of,
    study_body,
)
from crowd.platforms.prolific.submissions_and_messages import REWARD, SCREEN_OUT, Submissions
from crowd.platforms.prolific.wire import PAUSES_S, ProlificError, segment
from crowd.platforms.untrusted_text import printable

DRAFTS = frozenset({"UNPUBLISHED", "SCHEDULED"})
VAGUE = frozenset({"PROCESSING", "UNKNOWN"})
PASSING = VAGUE | {"PUBLISHING"}
"""States to be read again."""
OVER = frozenset({"AWAITING REVIEW", "COMPLETED"})
"""No new person can come. STOP may lead to either."""
STATES: dict[str, PostingState] = {
    "UNPUBLISHED": "draft",
    "SCHEDULED": "draft",
    "PUBLISHING": "open",
    "ACTIVE": "open",
    "PAUSED": "paused",
    "COMPLETED": "closed",
}
BEGUN = OVER | {"ACTIVE", "PAUSED"}
STOPPED, PARTS = "stopped", "parts"
"""Entries of Posted.facts: whether we ended it, and the ids of the parts of a weighted study."""
REOPENED = "Raise the number of places to reopen it."


class Studies(Submissions):
    """The studies of one account."""

    def publish(self, spec: PostingSpec) -> PlatformPosting:
        """The study of this reference, open: the one that is there, or a new one."""
        check_spec(spec, self.account)
        held = currency_of(self.wire, self.account, spec.currency)
        body = study_body(spec, self.account)
        study_id = self._find(spec)
        study = self._await_known_state(study_id) if study_id else {}
        if not study or status_of(study) in DRAFTS:
            check_balance(self.wire, spec, held)
        if not study:
            study_id = self._create(spec, body)
            study = self._await_known_state(study_id)
        publish_at = str(spec.options.get("publish_at") or "")
        if status_of(study) == "SCHEDULED" and not publish_at:
            study = self._move(study_id, "CANCEL_PUBLISH", BEGUN | {"UNPUBLISHED"})
        if status_of(study) == "UNPUBLISHED":
            self._mend(study_id, study, body)
        if status_of(study) in DRAFTS | PASSING:
            study = self._open_study(study_id, publish_at)
        _demand(body, study, FROZEN)
        facts = {
            "reference": spec.reference,
            "currency": spec.currency,
            "pays_screened": pays_screened(spec),
            STOPPED: False,
        }
        return self._platform_posting(study, facts)

    def look(self, posted: PlatformPosting) -> PlatformPosting:
        study = self.read(posted.external_id)
        parts = self._parts(study, posted)
        return self._platform_posting(study, {**posted.facts, PARTS: parts} if parts else posted.facts)

    def _parts(self, study: Mapping[str, Any], posted: PlatformPosting) -> list[str]:
        count = cells(study.get("filters") or [])
        known = list(posted.facts.get(PARTS, ()))
        return self.parts_of(posted.external_id, known, count)

    def _open_study(self, study_id: str, publish_at: str) -> dict[str, Any]:
        """The study, open or to be opened at its time."""
        if publish_at:
            return self._move(study_id, "SCHEDULE_PUBLISH", BEGUN | {"SCHEDULED"}, publish_at=publish_at)
        return self._move(study_id, "PUBLISH", BEGUN)

    def revise(self, posted: PlatformPosting, spec: PostingSpec) -> PlatformPosting:
        study = self.read(posted.external_id)
        places = whole(study.get("total_available_places"), "total_available_places")
        if spec.places < places:
            raise UnsupportedRequest(
                f"Prolific cannot take places back: {places} are offered, {spec.places} were asked for. "
                "Pause or close the posting instead."
            )
        if spec.places > places:
            held = currency_of(self.wire, self.account, spec.currency)
            check_balance(self.wire, replace(spec, places=spec.places - places), held)
            change: dict[str, Any] = {"total_available_places": spec.places}
            if pays_screened(spec):
                change["completion_codes"] = completion_codes(spec)
            self._patch(posted.external_id, change)
            study = self.read(posted.external_id)
            _demand(change, study, ("total_available_places",))
            posted = replace(posted, facts={**posted.facts, STOPPED: False})
        return self._platform_posting(study, posted.facts)

    def pause(self, posted: PlatformPosting) -> PlatformPosting:
        return self._platform_posting(
            self._move(posted.external_id, "PAUSE", OVER | {"PAUSED"}), posted.facts
        )

    def resume(self, posted: PlatformPosting) -> PlatformPosting:
        study = self._await_known_state(posted.external_id)
        if status_of(study) == "COMPLETED":
            raise UnsupportedRequest(f"The study is completed on Prolific and cannot be resumed. {REOPENED}")
        facts = {**posted.facts, STOPPED: False}
        return self._platform_posting(self._move(posted.external_id, "START", frozenset({"ACTIVE"})), facts)

    def close(self, posted: PlatformPosting) -> PlatformPosting:
        """A draft is deleted, because no participant ever saw it; every other state is stopped."""
        facts = {**posted.facts, STOPPED: True}
        try:
            study = self._await_known_state(posted.external_id)
            if status_of(study) == "SCHEDULED":
                study = self._move(posted.external_id, "CANCEL_PUBLISH", frozenset({"UNPUBLISHED"}))
            if status_of(study) == "UNPUBLISHED":
                self.wire.send("DELETE", f"studies/{segment(posted.external_id)}/")
                return replace(posted, state="closed", raw="DELETED", facts=facts)
        except ProlificError as refused:
            if refused.status != 404 or posted.state != "draft":
                raise
            return replace(posted, state="closed", raw="DELETED", facts=facts)
        return self._platform_posting(self._move(posted.external_id, "STOP", OVER), facts)

    def read(self, study_id: str) -> dict[str, Any]:
        data = self.wire.get(f"studies/{segment(study_id)}/")
        if not isinstance(data, dict) or not data.get("id"):
            raise PlatformError("Prolific's answer holds no study.", permanent=True)
        return data

    def _await_known_state(self, study_id: str) -> dict[str, Any]:
        """The study in a known state; read again while its state is a passing one."""
        for pause in PAUSES_S:
            study = self.read(study_id)
            if status_of(study) not in VAGUE:
                return study
            self.wire.wait(pause)
        raise PlatformError(f"Prolific says {status_of(study)} of the study. Look again later.")

    def _find(self, spec: PostingSpec) -> str:
        """The study that carries this reference, also if the call that created it was lost; else empty.

        A call that was thought lost may have made a second draft: the published one counts, else the first.
        """
        project = segment(project_of(spec, self.account))
        rows = [
            row
            for row in self.wire.rows(f"projects/{project}/studies/")
            if row.get("internal_name") == spec.reference and row.get("id")
        ]
        published = [row for row in rows if status_of(row) not in DRAFTS]
        if len(published) > 1:
            raise PlatformError(
                f"{len(published)} published studies on Prolific carry the name {spec.reference}. Stop all "
                "but one and rename them, then publish again.",
                permanent=True,
            )
        candidates = published or sorted(rows, key=lambda row: (str(row.get("date_created")), str(row["id"])))
        return str(candidates[0]["id"]) if candidates else ""

    def _create(self, spec: PostingSpec, body: Mapping[str, Any]) -> str:
        try:
            data = self.wire.send("POST", "studies/", body).data
        except PlatformError as error:
            if not error.uncertain:
                raise
            # Not sent again before a search: the lost call may have created it.
            self.wire.wait(PAUSES_S[1])
            study_id = self._find(spec)
            if not study_id:
                raise
            return study_id
        if not isinstance(data, dict) or not data.get("id"):
            raise PlatformError("Prolific made a study but did not name it.", uncertain=True)
        return str(data["id"])

    def _mend(self, study_id: str, study: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        """Changes a draft to what was asked for, and reads it back before people can come."""
        if any(differences(body, study)):
            self._patch(study_id, body)
            study = self.read(study_id)
        _demand(body, study)

    def _patch(self, study_id: str, change: Mapping[str, Any]) -> None:
        self.wire.send("PATCH", f"studies/{segment(study_id)}/", change, safe=True)

    def _move(self, study_id: str, action: str, goals: frozenset[str], **more: str) -> dict[str, Any]:
        """Asks for a transition and reads back. Before a second request it reads whether the state is reached
        already."""
        failure: PlatformError | None = None
        study = self.read(study_id)
        for pause in PAUSES_S:
            if status_of(study) in goals:
                return study
            if status_of(study) not in PASSING:
                failure = self._ask(study_id, {"action": action, **more})
                study = self.read(study_id)
                if status_of(study) in goals:
                    return study
                if failure is not None and failure.permanent and status_of(study) not in PASSING:
                    raise failure
            self.wire.wait(pause)
            study = self.read(study_id)
        if status_of(study) in goals:
            return study
        raise failure or PlatformError(
            f"The study is still {status_of(study)} on Prolific after {action}. Look again later.",
            uncertain=True,
        )

    def _ask(self, study_id: str, body: Mapping[str, str]) -> PlatformError | None:
        try:
            self.wire.send("POST", f"studies/{segment(study_id)}/transition/", body)
        except PlatformError as error:
            return error
        return None

    def _platform_posting(self, study: Mapping[str, Any], facts: Mapping[str, Any]) -> PlatformPosting:
        raw = str(study.get("status", ""))
        state = STATES.get(status_of(study), "unknown")
        if status_of(study) == "AWAITING REVIEW":
            # All places are filled: more can be added, unless it was stopped.
            state = "closed" if facts.get(STOPPED) else "open"
        taken = study.get("places_taken", study.get("number_of_submissions"))
        pays = _pays(study)
        return PlatformPosting(
            external_id=str(study["id"]),
            state=state,
            raw=printable(raw)[:40],
            places=whole(study.get("total_available_places"), "total_available_places"),
            taken=whole(taken or 0, "places_taken"),
            facts={**facts, **pays},
            reward_cents=pays.get(REWARD),
            names=(str(study["id"]), *facts.get(PARTS, ())),
            address=f"{app_of(self.account.site)}/researcher/workspaces/studies/{study['id']}",
        )


def _pays(study: Mapping[str, Any]) -> dict[str, int]:
    """What the study says that it pays, in minor units."""
    pays = {REWARD: whole(study["reward"], "reward")} if study.get("reward") is not None else {}
    for code in study.get("completion_codes") or []:
        for action in code.get("actions") or []:
            if action.get("fixed_screen_out_reward") is not None:
                pays[SCREEN_OUT] = whole(action["fixed_screen_out_reward"], "fixed_screen_out_reward")
    return pays


def status_of(study: Mapping[str, Any]) -> str:
    return str(study.get("status", "")).upper().replace("_", " ")


def _demand(body: Mapping[str, Any], study: Mapping[str, Any], names: tuple[str, ...] = ()) -> None:
    wrong = list(differences(body, study, names))
    if wrong:
        raise PlatformError(
            f"The study on Prolific is not the one that was sent: {'; '.join(wrong)[:300]}. Correct it "
            "there, or close it and publish anew.",
            permanent=True,
        )
