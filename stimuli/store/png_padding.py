"""PNG files padded to a length: other bytes for each seed, the very same image data.

The padding is one chunk before the end: ancillary, private, safe to copy (PNG, third edition, 5.4), so every
reader skips it. It cannot be compressed, so that no proxy makes the picture's own length visible again.
"""

from __future__ import annotations

import struct
import zlib

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR

from stimuli.errors import ShapeMismatch

SIGNATURE = b"\x89PNG\r\n\x1a\n"
PADDING = b"paDd"
END = struct.pack(">I4sI", 0, b"IEND", zlib.crc32(b"IEND"))
FRAME_BYTES = 12
"""Length, type and checksum of a chunk."""
LEAST_BYTES = FRAME_BYTES + 16
"""The shortest padding: 128 bits are never drawn twice."""


def check_whole(content: bytes, file: str) -> None:
    """ShapeMismatch unless `content` begins and ends as a PNG does; a file that was cut off does not."""
    if not (content.startswith(SIGNATURE) and content.endswith(END)):
        raise ShapeMismatch(
            f"the stored file {file} is no whole PNG, with {len(content)} bytes: take it from the backup"
        )


def pad_png(content: bytes, seed: bytes, length: int) -> bytes:
    """A whole PNG with a padding that follows from the seed (32 bytes), `length` bytes in all. ValueError if
    that is less than `LEAST_BYTES` more than it has."""
    if length < len(content) + LEAST_BYTES:
        raise ValueError(f"{len(content)} bytes cannot be padded to {length}: ask for {LEAST_BYTES} more")
    count = length - len(content) - FRAME_BYTES
    # A seed is used for one picture, so that the counter may always begin at 0.
    stream = Cipher(AES256(seed), CTR(bytes(16))).encryptor().update(bytes(count))
    checksum = zlib.crc32(stream, zlib.crc32(PADDING))
    body = memoryview(content)[: -len(END)]
    return b"".join((body, struct.pack(">I", count), PADDING, stream, struct.pack(">I", checksum), END))


def unpad_png(content: bytes) -> bytes:
    """The PNG as it was before `pad_png`; anything else as it is."""
    at = len(SIGNATURE)
    while at < len(content):
        (count,) = struct.unpack_from(">I", content.ljust(at + 4, b"\0"), at)
        if content[at + 4 : at + 8] == PADDING:
            return content[:at] + content[at + count + FRAME_BYTES :]
        at += count + FRAME_BYTES
    return content
