"""The documents of the platform: the question that comes in, the answers that go out."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit, urlunsplit

from crowd.rehearsal.mturk.records import Refused

SCHEMAS = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas"
EXTERNAL = f"{SCHEMAS}/2006-07-14/ExternalQuestion.xsd"
ANSWERS = f"{SCHEMAS}/2005-10-01/QuestionFormAnswers.xsd"
QUESTION_BYTES = 65_535
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class ExternalQuestion:
    """A page of the requester's own, shown in a frame. Height 0 fits by itself."""

    url: str
    height: int


def read_question(text: str, *, https_only: bool = False) -> ExternalQuestion:
    """Raises Refused if the document violates its schema, or is of a kind without an outside page."""
    if len(text.encode()) > QUESTION_BYTES:
        raise Refused(
            "InvalidParameterValue",
            f"Question is longer than {QUESTION_BYTES} bytes of XML, which is the limit.",
        )
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise Refused("XMLParseError", "Question must not declare a document type or entities.")
    try:
        root = ET.fromstring(text)
    except (ET.ParseError, ValueError) as error:
        raise Refused("XMLParseError", f"There was an error parsing the XML question: {error}.") from error
    if root.tag != f"{{{EXTERNAL}}}ExternalQuestion":
        raise Refused("XMLParseError", f"The simulator shows ExternalQuestion of {EXTERNAL} only.")
    if [child.tag for child in root] != [f"{{{EXTERNAL}}}{name}" for name in ("ExternalURL", "FrameHeight")]:
        raise Refused("XMLParseError", "ExternalQuestion must hold ExternalURL, then FrameHeight.")
    url, height = ((child.text or "").strip() for child in root)
    if not re.fullmatch(r"\d{1,5}", height):
        raise Refused("XMLParseError", "FrameHeight must be a whole number of pixels.")
    _check_url(url, {"https"} if https_only else {"https", "http"})
    return ExternalQuestion(url, int(height))


def _check_url(url: str, schemes: set[str]) -> None:
    try:
        parts = urlsplit(url)
        fits = parts.scheme in schemes and parts.hostname and not re.search(r"\s", url)
    except ValueError:
        fits = False
    if not fits:
        raise Refused("InvalidParameterValue", f"ExternalURL must be an address of {' or '.join(schemes)}.")


def address(url: str, **added: str) -> str:
    """The page's address with the platform's parameters added to its query."""
    parts = urlsplit(url)
    query = "&".join(part for part in (parts.query, urlencode(added)) if part)
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, parts.fragment))


def answers_document(fields: Iterable[tuple[str, str]]) -> str:
    """QuestionFormAnswers for what a form held. Characters that XML cannot hold become U+FFFD."""
    root = ET.Element("QuestionFormAnswers", xmlns=ANSWERS)
    for name, value in fields:
        answer = ET.SubElement(root, "Answer")
        ET.SubElement(answer, "QuestionIdentifier").text = _NOT_XML.sub("\ufffd", name)
        ET.SubElement(answer, "FreeText").text = _NOT_XML.sub("\ufffd", value)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode")
