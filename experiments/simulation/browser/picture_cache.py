"""Pictures that were looked at in this process: each is decoded and read once, however many people see it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from hashlib import blake2b
from threading import Lock
from typing import cast

from experiments.simulation.drawn import Drawn, drawn_beside, drawn_over
from experiments.simulation.looking import led, perceive
from experiments.simulation.sight import Percept, read_heat
from stimuli.render.png import decode
from stimuli.store.png_padding import unpad_png
from stimuli.types import Pixels

KEPT = 20_000
"""Percepts kept: about a hundred megabytes at most."""


PICTURES_KEPT = 200
"""Decoded pictures kept: 60 megabytes of the usual size."""


class Album:
    """Percepts by the content of the files, least recently used out first. Safe to share between threads.

    It saves work and knows nothing else: the same files give the same percept with and without it.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._lock = Lock()
        self._shelf: OrderedDict[bytes, Percept | Drawn] = OrderedDict()
        self._making: dict[bytes, Future[Percept | Drawn]] = {}
        self._pictures: OrderedDict[bytes, Pixels] = OrderedDict()

    def percept(self, original: bytes, overlay: bytes | None = None) -> Percept:
        """What is seen in a PNG file, and in the file of its overlay. Raises ShapeMismatch if one cannot be
        read."""
        name = _name(original)
        plain = cast("Percept", self._once(name, lambda: perceive(self._decode_picture(name, original))))
        if overlay is None:
            return plain

        def guided() -> Percept:
            below, above = self._decode_picture(name, original), decode(overlay)
            # Bars, sentences and other pictures stand beside the item and lead no eye over it.
            heat = read_heat(below, above) if below.shape == above.shape else None
            return plain if heat is None else led(plain, heat)

        return cast("Percept", self._once(name + _name(overlay), guided))

    def _decode_picture(self, name: bytes, original: bytes) -> Pixels:
        """A picture that is met again under every explanation of it; the last few stay decoded."""
        with self._lock:
            known = self._pictures.pop(name, None)
        picture = decode(original) if known is None else known
        with self._lock:
            self._pictures[name] = picture
            while len(self._pictures) > PICTURES_KEPT:
                self._pictures.popitem(last=False)
        return picture

    def drawn(self, original: bytes | None, mark: bytes) -> Drawn:
        """What is seen of an explanation that is to be rated, beside its picture if there is one."""
        if original is None:
            made = self._once(b"drawn" + _name(mark), lambda: drawn_beside(decode(mark)))
        else:
            name = b"drawn" + _name(original) + _name(mark)
            made = self._once(name, lambda: drawn_over(decode(original), decode(mark)))
        return cast("Drawn", made)

    def _once(self, name: bytes, make: Callable[[], Percept | Drawn]) -> Percept | Drawn:
        shelf = self._shelf
        with self._lock:
            if name in shelf:
                shelf.move_to_end(name)
                return shelf[name]
            awaited = self._making.get(name)
            if awaited is None:
                making = self._making[name] = Future()
        # Made outside the lock. People of one condition see the same pictures at the same time.
        if awaited is not None:
            return awaited.result()
        try:
            value = make()
        except BaseException as error:
            making.set_exception(error)
            raise
        else:
            making.set_result(value)
            with self._lock:
                shelf[name] = value
                while len(shelf) > self._kept:
                    shelf.popitem(last=False)
            return value
        finally:
            with self._lock:
                del self._making[name]


def _name(content: bytes) -> bytes:
    """Equal for one picture from different addresses, whose padding differs."""
    return blake2b(unpad_png(content), digest_size=16).digest()
