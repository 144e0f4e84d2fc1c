"""Writes what was looked at: a picture of each page, one PDF with captions, one page with all windows."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from crowd.rehearsal.screens.catalog import Screen

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

PIECE_SHARE = 1.3
"""Height over width of what fits on a sheet of A4 below its caption; a longer page needs several sheets."""
TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""A page has its places in a new window once a frame was drawn there."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window in CSS pixels; `zoom` 2 is one of twice the size at 200 %."""

    width_px: int
    height_px: int
    zoom: int = 1

    @property
    def name(self) -> str:
        if self.zoom == 1:
            return f"{self.width_px}x{self.height_px}"
        return f"{self.width_px * self.zoom}x{self.height_px * self.zoom} at {100 * self.zoom} %"


USUAL, PHONE = Window(1280, 800), Window(390, 844)
WINDOWS = (
    PHONE,
    Window(700, 500),
    Window(1366, 625),
    USUAL,
    Window(1920, 1080),
    Window(640, 400, zoom=2),
)
"""A phone, the smallest window that is let in by default, a laptop, two desktops, one of them enlarged."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture: the page, the language of the interface, the window, and its file in the album."""

    screen: Screen
    language: str
    window: Window
    file: str


@dataclass(slots=True)
class Album:
    """The pictures of one study in one folder."""

    folder: Path
    windows: Sequence[Window] = (USUAL,)
    pictures: list[Picture] = field(default_factory=list)

    def looker(self, language: str) -> Callable[[Page, Screen], None]:
        """What a walk calls with each page."""

        def look(page: Page, screen: Screen) -> None:
            for window in (PHONE,) if screen.is_small else self.windows:
                self.pictures.append(self._taken(page, screen, language, window))

        return look

    def _taken(self, page: Page, screen: Screen, language: str, window: Window) -> Picture:
        place = language if len(self.windows) == 1 else f"{language}/{window.name.replace(' ', '-')}"
        file = f"{place}/{len(self.pictures) + 1:03d}-{screen.name}.png"
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        # A page that is read is shown whole; a trial and a dialog are as large as the window.
        is_read = page.locator(".board, dialog[open]").count() == 0
        with in_window(page, window):
            page.screenshot(path=str(path), full_page=is_read, animations="disabled")
        return Picture(screen, language, window, file)


@contextmanager
def in_window(page: Page, window: Window) -> Iterator[None]:
    """Gives the page a window of that size, with as many pixels of the display as its zoom has."""
    size: ViewportSize = {"width": window.width_px, "height": window.height_px}
    before = page.viewport_size
    if before == size and window.zoom == 1:
        yield
        return
    page.set_viewport_size(size)
    zoomed = None
    if window.zoom > 1:
        zoomed = page.context.new_cdp_session(page)
        metrics = {**size, "deviceScaleFactor": window.zoom, "mobile": False}
        zoomed.send("Emulation.setDeviceMetricsOverride", metrics)
    page.evaluate(TWO_FRAMES)
    try:
        yield
    finally:
        if zoomed is not None:
            zoomed.send("Emulation.clearDeviceMetricsOverride")
            zoomed.detach()
        if before is not None:
            page.set_viewport_size(before)


STYLE = """
@page { size: A4; margin: 14mm }
body { font: 11pt/1.4 system-ui, sans-serif; color: #1a1a1a; margin: 0 }
h1 { font-size: 18pt; margin: 0 0 4mm } h2 { font-size: 13pt; margin: 0 0 1mm }
p { margin: 0 0 2mm } li { margin: 0 0 1mm } table { border-collapse: collapse }
td, th { text-align: start; padding: 1mm 4mm 1mm 0; vertical-align: top; border-bottom: 1px solid #ddd }
section { break-before: page } img { max-width: 100%; max-height: 225mm; border: 1px solid #bbb }
"""


def write_pdf(
    album: Album, browser: Browser, title: str, about: Sequence[str], missing: Sequence[str]
) -> Path:
    """One sheet for each picture, with its caption; in front what was looked at, and what was not reached."""
    numbered = list(enumerate(album.pictures))
    sheets = [sheet for number, picture in numbered for sheet in _sheets(album, number, picture)]
    lines = "".join(f"<p>{html.escape(line)}</p>" for line in about)
    rows = "".join(
        f"<tr><td>{number + 1}</td><td>{html.escape(picture.screen.what)}</td>"
        f"<td>{html.escape(picture.screen.condition or 'all')}</td><td>{picture.language}</td></tr>"
        for number, picture in numbered
    )
    left = "".join(f"<li>{html.escape(line)}</li>" for line in missing)
    first = (
        f"<h1>{html.escape(title)}</h1>{lines}"
        + (f"<h2>Not reached</h2><ul>{left}</ul>" if left else "")
        + f"<table><tr><th>No.</th><th>Page</th><th>Condition</th><th>Language</th></tr>{rows}</table>"
    )
    source, path = album.folder / "screens.html", album.folder / "screens.pdf"
    head = f"<!doctype html><meta charset=utf-8><title>{html.escape(title)}</title><style>{STYLE}</style>"
    source.write_text(f"{head}{first}{''.join(sheets)}", encoding="utf-8")
    page = browser.new_page()
    page.goto(source.as_uri())
    page.pdf(path=str(path), prefer_css_page_size=True, print_background=True)
    page.close()
    source.unlink()
    for piece in album.folder.glob("piece-*.png"):
        piece.unlink()
    return path


def _sheets(album: Album, number: int, picture: Picture) -> list[str]:
    screen = picture.screen
    caption = (
        f"<h2>{number + 1}. {html.escape(screen.what)}</h2><p>When: {html.escape(screen.when)}. Condition: "
        f"{html.escape(screen.condition or 'all')}. Language of the interface: {picture.language}. "
        f"Window: {picture.window.name}.</p>"
    )
    files = _pieces(album, number, picture)
    return [f'<section>{caption}<img src="{html.escape(file)}"></section>' for file in files]


def _pieces(album: Album, number: int, picture: Picture) -> list[str]:
    """The picture's file; the files of its pieces, if it is longer than a sheet."""
    with Image.open(album.folder / picture.file) as image:
        step = int(image.width * PIECE_SHARE)
        if image.height <= step:
            return [picture.file]
        names = []
        for top in range(0, image.height, step):
            names.append(f"piece-{number}-{top}.png")
            image.crop((0, top, image.width, min(top + step, image.height))).save(album.folder / names[-1])
        return names


SHEET_STYLE = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 24px; color: #1a1a1a; background: #fff }
table { border-collapse: collapse } th, td { padding: 6px; vertical-align: top; text-align: start }
thead th { position: sticky; top: 0; background: #fff } tbody th { max-width: 14em; font-weight: 400 }
img { width: 220px; border: 1px solid #bbb; display: block }
"""


def write_index(album: Album, title: str, missing: Sequence[str]) -> Path:
    """One page with a row for each screen and a column for each window."""
    rows_by_screen: dict[tuple[str, Screen], dict[Window, str]] = {}
    for picture in album.pictures:
        rows_by_screen.setdefault((picture.language, picture.screen), {})[picture.window] = picture.file
    heads = "".join(f"<th>{window.name}</th>" for window in album.windows)
    rows = []
    for (language, screen), files in rows_by_screen.items():
        said = f"{html.escape(screen.what)}<br>{html.escape(screen.condition or 'all')}, {language}"
        cells = "".join(_cell(files.get(window)) for window in album.windows)
        rows.append(f"<tr><th>{said}</th>{cells}</tr>")
    left = "".join(f"<li>{html.escape(line)}</li>" for line in missing)
    path = album.folder / "index.html"
    path.write_text(
        f"<!doctype html><meta charset=utf-8><title>{html.escape(title)}</title><style>{SHEET_STYLE}</style>"
        f"<h1>{html.escape(title)}</h1>"
        + (f"<h2>Not reached</h2><ul>{left}</ul>" if left else "")
        + f"<table><thead><tr><th></th>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>",
        encoding="utf-8",
    )
    return path


def _cell(file: str | None) -> str:
    if file is None:
        return "<td></td>"
    return f'<td><a href="{file}"><img loading="lazy" src="{file}" alt=""></a></td>'
