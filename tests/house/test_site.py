"""The documentation as a site: every link leads somewhere, every page is in the list, the API's page is the
API's, and messages that it explains are messages that there are."""

from __future__ import annotations

import ast
import html
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import call_command

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("analysis", "crowd", "experiments", "setup", "stimuli")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `make site` does, with every warning an error: a link to no page or heading, a page in no
    list."""
    folder = tmp_path_factory.mktemp("site")
    schema = folder / "schema.json"
    call_command("spectacular", format="openapi-json", file=str(schema))
    options = [
        "-q",
        "-W",
        "--keep-going",
        "-c",
        "docs",
        "-D",
        f"openapi={schema}",
        "-d",
        str(folder / "made"),
    ]
    command = [sys.executable, "-m", "sphinx", *options, ".", str(folder / "html")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_there_with_its_pictures(site: Path) -> None:
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert pages == {path.stem for path in (site / "html" / "docs").glob("*.html")}
    for page in (site / "html").rglob("*.html"):
        for source in re.findall(r'<img[^>]* src="([^":]+)"', page.read_text()):
            assert (page.parent / html.unescape(source)).is_file(), (page.name, source)


def test_it_finds_words_of_the_pages(site: Path) -> None:
    index = (site / "html" / "searchindex.js").read_text()
    assert all(f'"{word}":' in index or f"{word}:" in index for word in ("preregistr", "prolif", "troubl"))


def test_its_page_of_the_api_has_every_operation(site: Path) -> None:
    page = (site / "html" / "docs" / "api.html").read_text()
    told = {
        html.unescape(re.sub("<[^>]+>", "", head)).rstrip("#\uf0c1")
        for head in re.findall(r"<h2>(.*?)</h2>", page)
    }
    paths = json.loads((site / "schema.json").read_text())["paths"]
    wanted = {f"{verb.upper()} {path}" for path, verbs in paths.items() for verb in verbs}
    assert wanted <= {head.removesuffix("¶") for head in told}
    assert any(head.startswith("POST /api/sessions/") for head in told)


def said() -> Iterator[str]:
    """Every text in the source, with a mark for each value that is filled in."""
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value
                elif isinstance(node, ast.JoinedStr):
                    yield "".join(str(v.value) if isinstance(v, ast.Constant) else "\0" for v in node.values)


def test_it_explains_messages_that_there_are() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    told = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    texts = "\n".join(said())
    unknown = [
        message
        for message in told
        if not re.search(".*".join(re.escape(part) for part in message.split("…")), texts)
    ]
    assert len(told) > 20 and unknown == []
