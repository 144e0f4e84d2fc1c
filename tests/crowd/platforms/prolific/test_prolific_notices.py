import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta

import pytest

from crowd.platforms.base import BadNotice, Notification
from crowd.platforms.prolific.notices import read_notice

pytestmark = pytest.mark.pure

# The published test vector: secret, timestamp, body and signature, computed outside this code.
SECRET = "cGNqFPb6y0RT3XO9-example"
STAMP = "1732000000"
BODY = (
    b'{"resource_id": "6394cee383e14a167638b300", "event_type": "submission.status.change", '
    b'"participant_id": "60bf9310e8dec401be6e9615", "status": "AWAITING REVIEW"}'
)
SIGNATURE = "yOa4lag+vRTq52jHJVuh5ZXJmRG3vacQ3KtnEpEJo18="
NUMBER = b'{"event_type": 3, "resource_id": "a"}'
NOW = datetime.fromtimestamp(1732000000, UTC)


def headers(signature: str = SIGNATURE, stamp: str = STAMP, event: str = "evt-1") -> dict[str, str]:
    return {
        "X-Prolific-Request-Timestamp": stamp,
        "X-Prolific-Request-Signature": signature,
        "X-Event-ID": event,
    }


def signed(body: bytes, stamp: str = STAMP, secret: str = SECRET) -> str:
    mac = hmac.new(secret.encode(), stamp.encode() + body, hashlib.sha256)
    return base64.b64encode(mac.digest()).decode()


def test_it_accepts_the_published_vector() -> None:
    assert read_notice(headers(), BODY, SECRET, NOW) == [
        Notification("evt-1", "submission.status.change", submission="6394cee383e14a167638b300")
    ]


def test_it_reads_headers_in_any_case() -> None:
    lower = {name.lower(): value for name, value in headers().items()}
    assert read_notice(lower, BODY, SECRET, NOW) == read_notice(headers(), BODY, SECRET, NOW)


def test_it_reads_the_commas_of_the_published_example() -> None:
    with_commas = {name: f"{value}," for name, value in headers().items()}
    assert read_notice(with_commas, BODY, SECRET, NOW) == read_notice(headers(), BODY, SECRET, NOW)
    with pytest.raises(BadNotice, match="signature"):
        read_notice(headers(f"{SIGNATURE[:-2]}A=,"), BODY, SECRET, NOW)


def test_it_says_which_study_changed() -> None:
    body = b'{"event_type": "study.status.change", "resource_id": "abc", "metadata": "m", "status": "ACTIVE"}'
    assert read_notice(headers(signed(body)), body, SECRET, NOW) == [
        Notification("evt-1", "study.status.change", posting="abc")
    ]


def test_it_wakes_nothing_in_particular_for_a_kind_that_it_does_not_know() -> None:
    body = b'{"event_type": "workspace.something", "resource_id": "abc"}'
    assert read_notice(headers(signed(body)), body, SECRET, NOW) == [
        Notification("evt-1", "workspace.something")
    ]


def test_it_tries_the_form_of_the_published_sample_after_the_raw_bytes() -> None:
    compact = json.dumps(json.loads(BODY), separators=(",", ":")).encode()
    assert compact != BODY
    assert read_notice(headers(SIGNATURE), compact, SECRET, NOW)


@pytest.mark.parametrize("seconds", [-300, 0, 300])
def test_it_accepts_what_is_five_minutes_old_or_young(seconds: int) -> None:
    assert read_notice(headers(), BODY, SECRET, NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize("seconds", [-301, 301, 86_400])
def test_it_refuses_what_is_replayed_later(seconds: int) -> None:
    with pytest.raises(BadNotice, match="300 seconds"):
        read_notice(headers(), BODY, SECRET, NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("given", "body", "secret"),
    [
        (headers(), BODY.replace(b"AWAITING REVIEW", b"APPROVED"), SECRET),
        (headers(), BODY, "the-secret-before"),
        (headers(""), BODY, SECRET),
        (headers("é"), BODY, SECRET),
        (headers(SIGNATURE[:-4]), BODY, SECRET),
        (headers(SIGNATURE, "1732000001"), BODY, SECRET),
        (headers(SIGNATURE, ""), BODY, SECRET),
        (headers(SIGNATURE, "soon"), BODY, SECRET),
        (headers(SIGNATURE, "-1732000000"), BODY, SECRET),
        ({}, BODY, SECRET),
        (headers(signed(BODY, secret="")), BODY, ""),
        (headers(signed(b"not json")), b"not json", SECRET),
        (headers(signed(b"[]")), b"[]", SECRET),
        (headers(signed(b"{}")), b"{}", SECRET),
        (headers(signed(NUMBER)), NUMBER, SECRET),
        (headers(signed(b"[" * 60_000)), b"[" * 60_000, SECRET),
        (headers(signed(b" " * 70_000)), b" " * 70_000, SECRET),
        (headers(event=""), BODY, SECRET),
        (headers(event="x" * 141), BODY, SECRET),
        (headers(event="a\nb"), BODY, SECRET),
    ],
)  # fmt: skip
def test_it_refuses_what_is_forged_or_unreadable(given: dict[str, str], body: bytes, secret: str) -> None:
    with pytest.raises(BadNotice) as caught:
        read_notice(given, body, secret, NOW)
    assert SECRET not in str(caught.value)


def test_it_keeps_the_event_id_of_a_retry_so_that_it_counts_once() -> None:
    later = "1732000060"
    first = read_notice(headers(), BODY, SECRET, NOW)
    again = read_notice(headers(signed(BODY, later), later), BODY, SECRET, NOW)
    assert first == again
