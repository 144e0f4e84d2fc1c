"""Signal detection: how well yes and no tell right from wrong, apart from a liking for yes."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.special import ndtri

from analysis.stats import check
from analysis.stats.intervals_and_checks import StatsError, json_of


@dataclass(frozen=True, slots=True)
class Signal:
    """`hit_rate` and `false_rate` (0-1) as counted. `d_prime` is 0 if wrong is accepted as often as right,
    and `criterion` below 0 if more is accepted than half, each of the two kinds counting alike; both of
    rates with the log-linear correction."""

    hits: int
    rights: int
    false: int
    wrongs: int
    hit_rate: float
    false_rate: float
    d_prime: float
    criterion: float

    def table(self) -> list[dict[str, float]]:
        """One row."""
        return [
            {"hits": self.hits, "rights": self.rights, "false_acceptances": self.false}
            | json_of(self, "wrongs", "hit_rate", "false_rate", "d_prime", "criterion")
        ]


def signal_detection(hits: int, rights: int, false: int, wrongs: int) -> Signal:
    """`hits` of `rights` and `false` of `wrongs` were accepted.

    d' = z(H) - z(F), criterion = -(z(H) + z(F)) / 2, with H = (hits + .5) / (rights + 1) and F likewise: the
    log-linear correction of all rates, not only of 0 and 1 (Hautus 1995). Raises StatsError if nothing was
    right, or nothing wrong.
    """
    if check.count(hits, "The hits") > check.count(rights, "The right ones", least=1):
        raise StatsError(f"There are {hits} hits of {rights} right ones; give at most as many.")
    if check.count(false, "The false acceptances") > check.count(wrongs, "The wrong ones", least=1):
        raise StatsError(f"There are {false} false acceptances of {wrongs} wrong ones; give at most as many.")
    of_hits, of_false = (float(ndtri((n + 0.5) / (of + 1))) for n, of in ((hits, rights), (false, wrongs)))
    return Signal(
        hits=int(hits),
        rights=int(rights),
        false=int(false),
        wrongs=int(wrongs),
        hit_rate=hits / rights,
        false_rate=false / wrongs,
        d_prime=of_hits - of_false,
        criterion=-(of_hits + of_false) / 2,
    )
