"""Subscribing to notifications, against the simulated Prolific over HTTP."""

from __future__ import annotations

import re

import pytest
from django.core.management import CommandError, call_command

from crowd.rehearsal import prolific
from crowd.rehearsal.faults import Fault


def test_it_subscribes_once_and_shows_the_secret_once(capsys: pytest.CaptureFixture[str]) -> None:
    with prolific.simulator(seed=3) as simulated:
        call_command("subscribe", simulator=simulated.url)
        first = capsys.readouterr().out
        call_command("subscribe", simulator=simulated.url)
        second = capsys.readouterr().out
        subscriptions = list(simulated.notices.subscriptions.values())
        secret = simulated.notices.secret
    secret_line = re.search(r"PROLIFIC_WEBHOOK_SECRET=(\S+)", first)
    assert secret_line is not None and secret_line[1] == secret and secret not in second
    assert sorted(subscription.event_type for subscription in subscriptions) == [
        "study.status.change",
        "submission.status.change",
    ]
    assert all(
        subscription.is_enabled and subscription.target_url.endswith("/hooks/prolific/")
        for subscription in subscriptions
    )
    assert second.count("already") == 2


@pytest.mark.parametrize("answer", range(1, 7))
def test_it_never_ends_a_secret_that_stands(answer: int) -> None:
    """If an answer is lost, a repeat finishes, and at most one secret was ever made."""
    with prolific.simulator(seed=4) as simulated:
        untouched: list[Fault] = [""] * answer
        simulated.faults.forced = [*untouched, "lost_answer"]
        for _ in range(3):
            try:
                call_command("subscribe", simulator=simulated.url)
            except CommandError:
                continue
        assert len(simulated.notices.secrets) == 1
        enabled = {
            subscription.event_type
            for subscription in simulated.notices.subscriptions.values()
            if subscription.is_enabled
        }
    assert enabled == {"study.status.change", "submission.status.change"}


def test_it_refuses_an_address_that_cannot_be_reached() -> None:
    with pytest.raises(CommandError, match="Serve by https"):
        call_command("subscribe")
