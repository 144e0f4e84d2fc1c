"""Looks at the data before a study is complete, only as its plan names them: continue or stop, and no more.

Error is spent along a function of the share of the people that are there (Lan and DeMets 1983). The limits
follow by integrating the density of the statistic from look to look (Armitage, McPherson and Rowe 1969); the
integral is one over a grid, nothing is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import norm

from analysis.stats import check
from analysis.stats.intervals_and_checks import Floats, StatsError, finite
from analysis.stats.means.dunnett import largest_tail

Spending = Literal["obrien_fleming", "pocock"]
Answer = Literal["continue", "stop"]
LOOKS_MAX = 20
GAP_MIN = 0.01
"""Looks that lie closer together than this share of all people are one."""
ALPHA_MIN = 1e-6
NODES = 401
MANY_DF = 1e7
"""Degrees of freedom at which t is as good as normal."""
LIMIT_MAX = 12.0
"""A limit beyond this is never passed: the error that a very early look may spend is below 1e-32."""


@dataclass(frozen=True, slots=True)
class LookPlan:
    """`shares` (looks,): the share of all people who are there at each look, ascending, the last 1. `alpha`:
    two-sided error of all looks together. Declared before opening."""

    shares: tuple[float, ...]
    spending: Spending = "obrien_fleming"
    alpha: float = 0.05


def cumulative_alpha(share: float, spending: Spending, alpha: float) -> float:
    """The error that may be spent up to a `share` (0-1) of the people. Raises StatsError.

    "obrien_fleming": 2 (2 - 2 Phi(z / sqrt(share))), z that of alpha / 4: half of alpha on each side, each by
    the function of one side. "pocock": alpha log(1 + (e - 1) share).
    """
    part, level = check.number(share, "The share"), _checked_alpha(alpha)
    if not 0 < part <= 1:
        raise StatsError(f"The share of the people is {share}; give a number above 0, at most 1.")
    check.word(spending, "The spending function", get_args(Spending))
    if spending == "obrien_fleming":
        return float(4 * norm.sf(norm.isf(level / 4) / math.sqrt(part)))
    return level * math.log(1 + (math.e - 1) * part)


def look_limits(plan: LookPlan) -> tuple[float, ...]:
    """The two-sided limit of the standard normal statistic at each look (looks,). Raises StatsError for looks
    that do not ascend to 1, more than LOOKS_MAX, or closer than GAP_MIN."""
    shares = _checked_shares(plan.shares)
    limits: list[float] = []
    before = 0.0
    state: _State | None = None
    for share in shares:
        until = cumulative_alpha(share, plan.spending, plan.alpha)
        limit = _limit(state, share, until - before)
        state, before = _passed_on(state, share, limit), until
        limits.append(limit)
    return tuple(limits)


def crossing_probability(limits: Sequence[float], shares: Sequence[float], drift: float = 0.0) -> float:
    """The probability (0-1) that the statistic passes a two-sided limit at any look. `drift`: its expected
    value when all people are there; 0 gives the error, another the power. Raises StatsError."""
    times = _checked_shares(shares)
    edges = check.array(check.sequence(limits, "The limits"), "The limits")
    shift = check.number(drift, "The drift")
    if edges.size != len(times) or not (edges > 0).all() or abs(shift) > LIMIT_MAX:
        raise StatsError(
            f"There are {edges.size} limits for {len(times)} looks and a drift of {drift}; give one above 0 "
            f"for each look, and a drift of at most {LIMIT_MAX:g}."
        )
    state: _State | None = None
    inside = 1.0
    for share, edge in zip(times, np.minimum(edges, LIMIT_MAX), strict=True):
        state = _passed_on(state, share, float(edge), shift)
        inside = float(state.weights.sum())
    return finite(min(1.0, max(0.0, 1 - inside)), "The probability")


def look(plan: LookPlan, at: int, p: float) -> Answer:
    """Whether the study goes on after look `at` (from 1), at which the planned test had the two-sided `p`.

    Says continue or stop and no score. The last look always stops. Of several contrasts, `p` is the smallest
    and the plan's alpha divided by their number. Raises StatsError for a look that the plan does not have.
    """
    limits = look_limits(plan)
    number = check.count(at, "The look", least=1)
    value = check.number(p, "The p of the planned test")
    if number > len(limits):
        raise StatsError(
            f"The plan has {len(limits)} looks, and {at} is none of them; give 1 to {len(limits)}."
        )
    if not 0 <= value <= 1:
        raise StatsError(f"The p of the planned test is {p}; give a number from 0 to 1.")
    if number == len(limits):
        return "stop"
    return "stop" if float(norm.isf(value / 2)) >= limits[number - 1] else "continue"


def family_levels(plan: LookPlan, contrasts: int) -> tuple[float, ...]:
    """The level (0-1) of Dunnett's two-sided test of `contrasts` with one control at each look (looks,):
    groups of one size, planned contrasts all at once. Raises StatsError as `look_limits`, and for no
    contrast.

    The limits are those of each contrast at Šidák's share of alpha, and the levels are what Dunnett's test
    errs at these limits. All looks together err at most at alpha, as the statistics of all contrasts and
    looks are jointly normal (Royen 2014). The levels of one contrast would not do: given to Dunnett's test of
    eight, at five looks by "pocock", they err at 5.3 % in place of 5.
    """
    count = check.count(contrasts, "The number of contrasts", least=1)
    each = replace(plan, alpha=-math.expm1(math.log1p(-_checked_alpha(plan.alpha)) / count))
    loadings = np.full(count, math.sqrt(0.5))
    return tuple(largest_tail(limit, loadings, MANY_DF) for limit in look_limits(each))


@dataclass(frozen=True, slots=True)
class _State:
    """The score process at a look, on paths that passed no limit: `nodes`, and probabilities `weights`."""

    share: float
    nodes: Floats
    weights: Floats


def _passed_on(state: _State | None, share: float, limit: float, drift: float = 0.0) -> _State:
    """The part of the process inside of the limit; Simpson's rule over the score, N(drift share, share)."""
    edge = limit * math.sqrt(share)
    nodes = np.linspace(-edge, edge, NODES)
    rule = np.ones(NODES)
    rule[1:-1:2], rule[2:-1:2] = 4, 2
    rule *= (nodes[1] - nodes[0]) / 3
    if state is None:
        density = norm.pdf(nodes, drift * share, math.sqrt(share))
    else:
        step = share - state.share
        moves = nodes[:, None] - state.nodes[None, :]
        density = norm.pdf(moves, drift * step, math.sqrt(step)) @ state.weights
    return _State(share, nodes, density * rule)


def _outside(state: _State | None, share: float, limit: float) -> float:
    """The probability of passing `limit` at this look for the first time, without a drift."""
    edge = limit * math.sqrt(share)
    if state is None:
        return float(2 * norm.sf(limit))
    deviation = math.sqrt(share - state.share)
    high = ndtr((state.nodes - edge) / deviation)
    low = ndtr((-edge - state.nodes) / deviation)
    return float((high + low) @ state.weights)


def _limit(state: _State | None, share: float, error: float) -> float:
    if _outside(state, share, LIMIT_MAX) >= error:
        return LIMIT_MAX
    return float(brentq(lambda limit: _outside(state, share, limit) - error, 0.0, LIMIT_MAX, xtol=1e-10))


def _checked_alpha(alpha: float) -> float:
    if not ALPHA_MIN <= check.number(alpha, "Alpha") <= 0.5:
        raise StatsError(f"Alpha is {alpha}; give a number from {ALPHA_MIN:g} to 0.5, for example 0.05.")
    return float(alpha)


def _checked_shares(shares: Sequence[float]) -> tuple[float, ...]:
    try:
        values = check.array(list(shares), "The looks")
    except TypeError as error:
        raise StatsError(f"The looks are {shares!r}; give the share of people at each of them.") from error
    gaps = np.diff(np.concatenate([[0.0], values]))
    if not 0 < values.size <= LOOKS_MAX or (gaps < GAP_MIN).any() or abs(values[-1] - 1) > 1e-9:
        raise StatsError(
            f"The looks are at {', '.join(f'{value:g}' for value in values) or 'no share'}; give 1 to "
            f"{LOOKS_MAX} ascending shares of the people at least {GAP_MIN:g} apart, the last of them 1."
        )
    return tuple(float(value) for value in values)
