"""The old address of `analysis.stats.shares.proportions`, for reporters of installed packages."""

import warnings

from analysis.stats.shares.proportions import *  # noqa: F403

warnings.warn(
    f"Import analysis.stats.shares.proportions: {__name__} goes with the next release.", DeprecationWarning, 2
)
