"""The platforms under test, for the contract suite of platforms."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crowd.platforms.base import PlatformPosting
from tests.contracts.stages import CASES, Case, Stage, stage


@pytest.fixture(params=CASES)
def platform(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture
def on(platform: Case) -> Iterator[Stage]:
    with stage(platform) as made:
        yield made


@pytest.fixture
def posted(on: Stage) -> PlatformPosting:
    return on.service.publish(on.spec)
