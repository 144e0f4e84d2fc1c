"""Texts that people read: hostile Markdown, digests, placeholders, a paradigm's words; secrets."""

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from html.parser import HTMLParser

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from experiments.definition.study import StudyDefinition
from experiments.paradigms import PARADIGMS, get_paradigm
from experiments.tokens import (
    MEDIA_ID_LENGTH,
    hash_token,
    keyed_hash,
    media_reference,
    new_media_id,
    new_token,
)
from experiments.wording import sentences
from experiments.wording.markdown import ALLOWED_TAGS, html_of, text_digest
from experiments.wording.sentence_tables import LANGUAGES, table_of, words_for
from experiments.wording.sentences import entry_words, legend_of, placeholders, text_html
from experiments.wording.smallest_window import Window, windows_of
from tests.experiments.definitions import definition

pytestmark = pytest.mark.pure


class Reader(HTMLParser):
    """What a browser would make of a page: its tags, attributes and plain text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![picture](https://elsewhere.example/p.png)",
    "<svg><script>alert(1)</script></svg>",
    "<style>body{display:none}</style>",
    '<p style="background:url(https://elsewhere.example)">x</p>',
    '<p onclick="alert(1)" class="a" id="b">x</p>',
    "<iframe src='https://elsewhere.example'></iframe>",
    "<form action='https://elsewhere.example'><input name=a><button>b</button></form>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](&#106;avascript:alert(1))",
    "[a](data:text/html;base64,PHNjcmlwdD4=)",
    "[a](http://plain.example)",
    "<a href='vbscript:x'>a</a>",
    "<a href='https://x.example' target='_blank' onmouseover='y'>a</a>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<meta http-equiv=refresh content='0;url=https://elsewhere.example'>",
    "<link rel=stylesheet href=https://elsewhere.example/a.css>",
    "<base href='https://elsewhere.example/'>",
    "<object data=x></object><embed src=x><video src=x></video><audio src=x>",
    "`<script>` and\n\n    <script>alert(1)</script>\n",
]
INERT = {"href", "rel", "title", "lang"}
"""Attributes that neither run nor load nor style anything; the target of a link is checked separately."""
SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):", re.IGNORECASE)


def scheme_of(link: str) -> str:
    """The scheme as a browser reads it: blanks and control characters do not count; empty: relative."""
    match = SCHEME.match(re.sub(r"[\x00-\x20]", "", link))
    return match[1].lower() if match else ""


def is_harmless(html: str) -> bool:
    page = Reader(html)
    names = {name for name, _ in page.attributes}
    links = [value or "" for name, value in page.attributes if name == "href"]
    schemes = set(map(scheme_of, links))
    return page.tags <= ALLOWED_TAGS and names <= INERT and schemes <= {"https", "mailto", ""}


@pytest.mark.parametrize("text", HOSTILE)
def test_it_leaves_nothing_that_runs_loads_or_styles(text: str) -> None:
    assert is_harmless(html_of(text)) and is_harmless(html_of(f"# Title\n\n> {text}\n\n1. {text}\n"))


@pytest.mark.parametrize("text", HOSTILE)
def test_it_leaves_nothing_harmful_that_came_through_a_placeholder(text: str) -> None:
    assert is_harmless(html_of("# {title}\n\nBy {title}.", {"title": text}))


@given(
    st.lists(st.sampled_from([*HOSTILE, "<", ">", '"', "\n\n", "    ", "`", "](", "<a href="]), max_size=6)
)
def test_no_mixture_of_them_becomes_harmful(parts: list[str]) -> None:
    assert is_harmless(html_of("".join(parts)))


def test_the_reader_would_notice_harm() -> None:
    assert not is_harmless("<script>x</script>") and not is_harmless('<p class="a">x</p>')
    assert not is_harmless('<a href=" java&#10;script:x">x</a>')
    assert not is_harmless('<a href="javascript:x">x</a>') and is_harmless('<a href="https://x">x</a>')


def test_it_keeps_what_a_lab_writes() -> None:
    html = html_of(
        "# Title\n\nSome *soft* and **strong** words.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
        "[site](https://lab.example) [post](mailto:lab@example.org)"
    )
    page = Reader(html)
    assert {"h1", "em", "strong", "ul", "li", "table", "td", "a"} <= page.tags
    assert ("href", "https://lab.example") in page.attributes
    assert ("href", "mailto:lab@example.org") in page.attributes
    assert page.attributes.count(("rel", "noopener noreferrer")) == 2
    assert "Some soft and strong words." in page.text


def test_markup_in_code_is_shown_and_not_obeyed() -> None:
    page = Reader(html_of("Write `<b>bold</b>`."))
    assert "b" not in page.tags and "<b>bold</b>" in page.text


# Placeholders


def test_time_and_pay_are_said_in_the_reader_s_way() -> None:
    study = definition(
        title="A & B",
        reward={"amount_cents": 205, "currency": "EUR", "expected_minutes": 7.5},
        device={"min_width_px": 800, "min_height_px": 600},
        ethics={"contact": "lab@example.org", "approval": "12/3", "minimum_age": 21},
    )
    assert placeholders(study) == {
        "title": "A & B",
        "minutes": "7.5",
        "reward": "2.05 EUR",
        "contact": "lab@example.org",
        "approval": "12/3",
        "minimum_age": "21",
        "min_width_px": "800",
        "min_height_px": "600",
        "legend": legend_of(study),
    }


@pytest.mark.parametrize(("minutes", "text"), [(7, "7"), (7.0, "7"), (0.5, "0.5"), (12.25, "12.25")])
def test_whole_minutes_have_no_decimals(minutes: float, text: str) -> None:
    study = definition(reward={"amount_cents": 0, "expected_minutes": minutes})
    assert placeholders(study)["minutes"] == text and placeholders(study)["reward"] == "0.00 USD"


def test_unknown_braces_stay_as_they_were_written() -> None:
    assert "{nothing} 5 {} {" in Reader(html_of("{nothing} {n} {} {", {"n": "5"})).text


# Digests


def test_a_digest_is_that_of_the_parts_joined_by_a_separator() -> None:
    expected = hashlib.sha256(b"consent\x1fa b\x1f\xc3\xa4").hexdigest()
    assert text_digest("consent", "a b", "ä") == expected


@given(st.lists(st.text("ab", max_size=3), max_size=4), st.lists(st.text("ab", max_size=3), max_size=4))
def test_other_parts_have_another_digest(first: list[str], second: list[str]) -> None:
    """Even if the same letters are cut in another place; the digest of nothing is that of an empty text."""
    same = (first or [""]) == (second or [""])
    assert (text_digest(*first) == text_digest(*second)) == same


# Words


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("paradigm", list(PARADIGMS))
def test_a_paradigm_s_words_come_before_the_common_ones(language: str, paradigm: str) -> None:
    study = definition().model_copy(update={"language": language, "paradigm": paradigm, "design": {}})
    words, table = words_for(study), table_of(language)
    special: dict[str, str] = {}
    for voice in get_paradigm(paradigm).voices(study):
        special |= table["paradigms"].get(voice, {})
    assert set(words) == set(table["pages"])
    for name, sentence in words.items():
        assert sentence == (special[name] if name in special else table["pages"][name])


def test_some_paradigm_has_words_and_they_stay_with_it() -> None:
    """Merging must not write into the common table, which lives as long as the process."""
    special = table_of("en")["paradigms"]
    speaking = [name for name in PARADIGMS if special.get(name)]
    assert speaking
    common = dict(table_of("en")["pages"])
    words = {name: words_for(definition().model_copy(update={"paradigm": name})) for name in speaking}
    assert table_of("en")["pages"] == common
    assert all(said != common for said in words.values())
    assert words == {
        name: words_for(definition().model_copy(update={"paradigm": name})) for name in reversed(speaking)
    }


def test_languages_do_not_say_the_same() -> None:
    english, german = (words_for(definition(language=language)) for language in ("en", "de"))
    assert set(english) == set(german)
    assert len([name for name in english if english[name] == german[name]]) < len(english) / 4


def test_the_sentences_at_the_door_are_those_of_the_language() -> None:
    for language in LANGUAGES:
        assert entry_words(definition(language=language)) == table_of(language)["entry"]
    assert entry_words(None) == table_of("en")["entry"]
    assert not set(table_of("en")["entry"].values()) & set(table_of("de")["entry"].values())


# Secrets

URL_SAFE = re.compile(r"[A-Za-z0-9_-]+")


def test_tokens_are_long_url_safe_and_never_the_same() -> None:
    tokens = {new_token() for _ in range(200)}
    assert len(tokens) == 200 and all(URL_SAFE.fullmatch(token) for token in tokens)
    # 32 random bytes are 43 letters of six bits.
    assert {len(token) for token in tokens} == {43}


def test_media_ids_have_the_length_that_addresses_are_cut_at() -> None:
    ids = {new_media_id() for _ in range(200)}
    assert len(ids) == 200 and {len(media_id) for media_id in ids} == {MEDIA_ID_LENGTH}


def test_a_token_is_stored_as_its_hash() -> None:
    assert hash_token("secret") == hashlib.sha256(b"secret").hexdigest()


@pytest.mark.parametrize("token", ["\ud800", "ä\udfff", "\x00", "x" * 100_000])
def test_no_header_breaks_the_hash(token: str) -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", hash_token(token))


def test_a_keyed_hash_is_an_hmac_of_the_parts_under_a_key_of_the_purpose() -> None:
    key = hmac.new(settings.IDENTITY_KEY.encode(), b"legible:person", hashlib.sha256).digest()
    expected = hmac.new(key, b"prolific\x1fp1", hashlib.sha256).hexdigest()
    assert keyed_hash("person", "prolific", "p1") == expected


def test_purposes_parts_and_secrets_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = [
        keyed_hash("a", "b", "c"),
        keyed_hash("b", "a", "c"),
        keyed_hash("a", "bc"),
        keyed_hash("a", "b"),
    ]
    monkeypatch.setattr(settings, "IDENTITY_KEY", "another")
    hashes.append(keyed_hash("a", "b", "c"))
    assert len(set(hashes)) == len(hashes)


def test_an_address_is_the_session_s_id_and_a_mac_of_128_bits() -> None:
    media_id = new_media_id()
    mac = bytes.fromhex(keyed_hash("media", media_id, "12", "image"))[:16]
    reference = media_reference(media_id, "12", "image")
    assert reference == media_id + urlsafe_b64encode(mac).decode().rstrip("=")
    assert URL_SAFE.fullmatch(reference) and len(reference) == 2 * MEDIA_ID_LENGTH


def test_every_session_trial_and_role_has_an_address_that_no_other_has() -> None:
    ids = [new_media_id() for _ in range(3)]
    roles = ("image", "explanation", "first/image", "first/explanation", "tile")
    made = {media_reference(i, str(t), role) for i in ids for t in range(20) for role in roles}
    assert len(made) == 3 * 20 * len(roles)
    # Beyond the session's id no two addresses share their beginning: nothing can be counted up.
    tails = {address[MEDIA_ID_LENGTH : MEDIA_ID_LENGTH + 6] for address in made}
    assert len(tails) == len(made)


def test_only_what_a_text_names_in_braces_is_worked_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    study = definition()
    asked: list[str] = []

    def windows(of: StudyDefinition) -> Sequence[Window]:
        asked.append(of.slug)
        return windows_of(of)

    monkeypatch.setattr(sentences, "windows_of", windows)
    assert text_html(study, "Thank you.") == "<p>Thank you.</p>"
    ethics = study.ethics
    assert text_html(study, "Write to {contact}. {none}") == html_of(f"Write to {ethics.contact}. {{none}}")
    assert asked == [], "a debrief that names the contact lays out no trial"
    assert text_html(study, "{min_width_px} wide") == f"<p>{windows_of(study)[-1].width_px} wide</p>"
    assert asked == [study.slug]
