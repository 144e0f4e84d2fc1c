"""Padded PNG files: every byte accounted for by a reader of its own, and the pixels by two others."""

from __future__ import annotations

import io
import lzma
import struct
import zlib
from collections.abc import Iterator

import cv2
import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import ECB
from PIL import Image

from stimuli.errors import ShapeMismatch
from stimuli.render import png
from stimuli.store.png_padding import LEAST_BYTES, check_whole, pad_png, unpad_png
from stimuli.types import Pixels

pytestmark = pytest.mark.pure

SEED = bytes(range(32))


def noise(side: int = 48, seed: int = 1) -> Pixels:
    return np.random.default_rng(seed).integers(0, 256, (side, side, 3), np.uint8)


def as_format(name: str) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(noise()).save(buffer, name)
    return buffer.getvalue()


def chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Type and data of every chunk; each checksum is right, and nothing is left over."""
    assert content[:8] == b"\x89PNG\r\n\x1a\n"
    at = 8
    while at < len(content):
        (count,) = struct.unpack(">I", content[at : at + 4])
        kind, data = content[at + 4 : at + 8], content[at + 8 : at + 8 + count]
        assert struct.unpack(">I", content[at + 8 + count : at + 12 + count]) == (zlib.crc32(kind + data),)
        yield kind, data
        at += 12 + count
    assert at == len(content)


@pytest.mark.parametrize("more", [LEAST_BYTES, LEAST_BYTES + 1, 5000, 300_000])
def test_it_has_the_length_that_was_asked_for_and_one_chunk_more(more: int) -> None:
    content = png.encode(noise())
    served = pad_png(content, SEED, len(content) + more)
    assert len(served) == len(content) + more
    *before, (_, padding), end = chunks(served)
    assert [*before, end] == list(chunks(content))
    assert len(padding) == more - 12


def test_the_pixels_are_untouched_for_two_other_readers() -> None:
    picture = noise()
    served = pad_png(png.encode(picture), SEED, 40_000)
    with Image.open(io.BytesIO(served)) as image:
        assert np.array_equal(np.asarray(image), picture)
    blue_first = cv2.imdecode(np.frombuffer(served, np.uint8), cv2.IMREAD_UNCHANGED)
    assert blue_first is not None and np.array_equal(blue_first[..., ::-1], picture)


def test_every_reader_may_skip_the_padding() -> None:
    """Bit 5 of each letter says: may be skipped, registered nowhere, conforms to this version, may be copied
    by editors that do not know it (PNG, third edition, 5.4)."""
    content = png.encode(noise())
    kind = list(chunks(pad_png(content, SEED, len(content) + 100)))[-2][0]
    assert kind.isalpha() and [bool(letter & 32) for letter in kind] == [True, True, False, True]


def test_the_padding_is_the_cipher_of_a_counter() -> None:
    content = png.encode(noise())
    padding = list(chunks(pad_png(content, SEED, len(content) + 12 + 1000)))[-2][1]
    block = Cipher(AES256(SEED), ECB()).encryptor()
    stream = b"".join(block.update(number.to_bytes(16)) for number in range(63))
    assert padding == stream[:1000]


def test_another_seed_gives_other_bytes_and_the_same_seed_the_same() -> None:
    content = png.encode(noise())
    made = {pad_png(content, bytes([number]) * 32, len(content) + LEAST_BYTES) for number in range(256)}
    assert len(made) == 256
    assert pad_png(content, SEED, 20_000) == pad_png(content, SEED, 20_000)


def test_no_compression_makes_the_pictures_own_length_visible_again() -> None:
    small, large = (png.encode(noise(side)) for side in (16, 64))
    lengths = [len(lzma.compress(pad_png(content, SEED, 20_000))) for content in (small, large)]
    assert len(large) > 5 * len(small) and min(lengths) >= 19_900


@pytest.mark.parametrize("side", [1, 16, 200])
def test_it_is_the_stored_file_again_without_the_padding(side: int) -> None:
    content = png.encode(noise(side))
    assert unpad_png(pad_png(content, SEED, len(content) + 777)) == content == unpad_png(content)


def test_what_is_no_whole_picture_stays_as_it_is_without_padding() -> None:
    content = pad_png(png.encode(noise()), SEED, 20_000)
    ends = range(8, len(content) - 12, 97)
    assert all(len(unpad_png(content[:end])) <= end for end in ends)
    for other in (b"", b"a text", bytes(50), as_format("JPEG")):
        assert unpad_png(other) == other


def test_it_refuses_too_short_a_length() -> None:
    content = png.encode(noise())
    with pytest.raises(ValueError, match="28 more"):
        pad_png(content, SEED, len(content) + LEAST_BYTES - 1)


def test_it_takes_a_picture_that_was_cut_off_for_none() -> None:
    content = png.encode(noise(8))
    check_whole(content, "views/ab/whole.png")
    for end in range(len(content)):
        with pytest.raises(ShapeMismatch, match=rf"views/ab/cut.png is no whole PNG, with {end} bytes"):
            check_whole(content[:end], "views/ab/cut.png")


@pytest.mark.parametrize("name", ["JPEG", "GIF", "WEBP", "BMP"])
def test_it_takes_no_other_format(name: str) -> None:
    with pytest.raises(ShapeMismatch, match="no whole PNG"):
        check_whole(as_format(name), "views/ab/other.png")


def test_it_takes_no_picture_with_something_behind_it() -> None:
    with pytest.raises(ShapeMismatch, match="no whole PNG"):
        check_whole(png.encode(noise()) + b"more", "views/ab/more.png")
