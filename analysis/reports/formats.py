"""The old address of `analysis.any_table.formats`, for reporters of installed packages."""

import warnings

from analysis.any_table.formats import *  # noqa: F403

warnings.warn(
    f"Import analysis.any_table.formats: {__name__} goes with the next release.", DeprecationWarning, 2
)
