"""The old address of `analysis.reports.parts.flow`, for reporters of installed packages."""

import warnings

from analysis.reports.parts.flow import *  # noqa: F403

warnings.warn(
    f"Import analysis.reports.parts.flow: {__name__} goes with the next release.", DeprecationWarning, 2
)
