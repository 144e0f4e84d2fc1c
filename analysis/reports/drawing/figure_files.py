"""The style of all figures, and one matplotlib figure as SVG for the page and as PDF for the paper."""

from __future__ import annotations

import io
import re
from typing import Any

INK = "#222222"
STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so a figure is the same on every machine
    "font.size": 9.5,
    "axes.edgecolor": "#666666",
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "text.color": INK,
    "text.parse_math": False,
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}


def as_svg_file(figure: Any, key: str) -> bytes:
    """The figure as a file of its own, the same in every run."""
    return _figure_bytes(figure, "svg", {"svg.hashsalt": key}, {"Date": None, "Creator": None})


def inline(svg: bytes, key: str) -> str:
    """Such a file as an element inside a page.

    Several figures share a page, so every id and every reference to it gets the key as a prefix.
    """
    text = svg.decode()
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{key}-", text[text.index("<svg") :])


def as_pdf(figure: Any) -> bytes:
    return _figure_bytes(figure, "pdf", {}, {"CreationDate": None, "Creator": None, "Producer": None})


def _figure_bytes(figure: Any, form: str, settings: dict[Any, Any], metadata: dict[str, Any]) -> bytes:
    import matplotlib

    # No state of pyplot is touched: figures are drawn in web workers and Celery workers alike.
    with matplotlib.rc_context({**STYLE, **settings}):
        buffer = io.BytesIO()
        figure.savefig(buffer, format=form, metadata=metadata)
    return buffer.getvalue()
