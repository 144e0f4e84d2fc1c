"""An offer as a study would make it."""

from typing import get_args

from crowd.platforms.base import Outcome, PostingSpec

OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


def spec(places: int = 5, reference: str = "legible-0123456789abcdef012345") -> PostingSpec:
    """Five places at 3.00 GBP for 12.5 minutes, with a code for each way to leave."""
    return PostingSpec(
        reference=reference,
        title="Can you predict the machine?",
        description="Look at pictures and say what a machine would say.",
        url="https://lab.example/join/wolf-or-husky/?via=0123456789abcdef012345",
        places=places,
        reward_cents=300,
        currency="GBP",
        expected_minutes=12.5,
        maximum_minutes=60,
        codes={outcome: f"CODE{outcome.upper().replace('_', '')}" for outcome in OUTCOMES},
    )
