"""Writes what was looked at: a picture of each page, one PDF with captions, one page with all windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from django.template.loader import render_to_string
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
class AlbumPicture:
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
    pictures: list[AlbumPicture] = field(default_factory=list)

    def looker(self, language: str) -> Callable[[Page, Screen], None]:
        """What a walk calls with each page."""

        def look(page: Page, screen: Screen) -> None:
            for window in (PHONE,) if screen.is_small else self.windows:
                self.pictures.append(self._take_picture(page, screen, language, window))

        return look

    def _take_picture(self, page: Page, screen: Screen, language: str, window: Window) -> AlbumPicture:
        place = language if len(self.windows) == 1 else f"{language}/{window.name.replace(' ', '-')}"
        file = f"{place}/{len(self.pictures) + 1:03d}-{screen.name}.png"
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        # A page that is read is shown whole; a trial and a dialog are as large as the window.
        is_read = page.locator(".board, dialog[open]").count() == 0
        with in_window(page, window):
            page.screenshot(path=str(path), full_page=is_read, animations="disabled")
        return AlbumPicture(screen, language, window, file)


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


def write_pdf(
    album: Album, browser: Browser, title: str, about: Sequence[str], missing: Sequence[str]
) -> Path:
    """One sheet for each picture, with its caption; in front what was looked at, and what was not reached."""
    pictures = [(picture, _pieces(album, number, picture)) for number, picture in enumerate(album.pictures)]
    shown = {"title": title, "about": about, "missing": missing, "pictures": pictures}
    source, path = album.folder / "screens.html", album.folder / "screens.pdf"
    source.write_text(render_to_string("screens/sheets.html", shown), encoding="utf-8")
    page = browser.new_page()
    page.goto(source.as_uri())
    page.pdf(path=str(path), prefer_css_page_size=True, print_background=True)
    page.close()
    source.unlink()
    for piece in album.folder.glob("piece-*.png"):
        piece.unlink()
    return path


def _pieces(album: Album, number: int, picture: AlbumPicture) -> list[str]:
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


def write_index(album: Album, title: str, missing: Sequence[str]) -> Path:
    """One page with a row for each screen and a column for each window."""
    rows_by_screen: dict[tuple[str, Screen], dict[Window, str]] = {}
    for picture in album.pictures:
        rows_by_screen.setdefault((picture.language, picture.screen), {})[picture.window] = picture.file
    rows = [(*row, [files.get(window) for window in album.windows]) for row, files in rows_by_screen.items()]
    shown = {"title": title, "missing": missing, "windows": album.windows, "rows": rows}
    path = album.folder / "index.html"
    path.write_text(render_to_string("screens/index.html", shown), encoding="utf-8")
    return path
