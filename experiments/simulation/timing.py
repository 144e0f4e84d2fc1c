"""How long simulated people take."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LONGEST_MS = 600_000
"""No person spends more than ten minutes on one trial."""


@dataclass(frozen=True, slots=True)
class ExGaussian:
    """A normal plus an exponential: the usual shape of response times. All three in milliseconds.

    Mean `mu_ms + tau_ms`, standard deviation sqrt(sigma_ms^2 + tau_ms^2), both before the floor: a draw below
    `floor_ms` becomes `floor_ms`. Reference: Luce, Response Times (1986).
    """

    mu_ms: float
    sigma_ms: float
    tau_ms: float
    floor_ms: int = 150

    @property
    def mean_ms(self) -> float:
        return self.mu_ms + self.tau_ms

    def draw_ms(self, rng: np.random.Generator, slowness: float = 1.0) -> int:
        """One time in whole milliseconds, stretched by `slowness` (1: the declared distribution)."""
        raw = rng.normal(self.mu_ms, self.sigma_ms) + rng.exponential(self.tau_ms)
        return int(np.clip(round(raw * slowness), self.floor_ms, LONGEST_MS))


STUDY_PICTURE = ExGaussian(mu_ms=4000, sigma_ms=900, tau_ms=3000)
"""Looking at one training example: about seven seconds."""
DECIDE = ExGaussian(mu_ms=2200, sigma_ms=450, tau_ms=1800)
"""An answer that was thought about: about four seconds."""
OBEY = ExGaussian(mu_ms=2000, sigma_ms=400, tau_ms=1500)
"""Reading an instruction and pressing its key."""
RUSH = ExGaussian(mu_ms=900, sigma_ms=200, tau_ms=900)
"""An answer without thought: slow enough not to stand out, fast enough to save time."""
SKIM = ExGaussian(mu_ms=1800, sigma_ms=400, tau_ms=1400)
"""A training example, for a person who waits for the button."""
READ_WORD_MS = 252
"""Reading a word silently: 238 words a minute (Brysbaert 2019, Journal of Memory and Language 109)."""
MARK_CELL_MS = 60
"""Painting over one cell of a grid with a brush that covers several at once."""
BURST = ExGaussian(mu_ms=110, sigma_ms=30, tau_ms=40, floor_ms=40)
"""Pressing one key repeatedly."""
ABSENCE = ExGaussian(mu_ms=25_000, sigma_ms=5000, tau_ms=30_000)
"""Away from the screen."""
CONSULT = ExGaussian(mu_ms=1200, sigma_ms=300, tau_ms=1200)
"""One visit to the reservoir."""
