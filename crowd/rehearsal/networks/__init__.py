"""Networks that the demo brings along, so that it need not train what it has trained before."""

from __future__ import annotations

from pathlib import Path

from stimuli.store import Store

FOLDER = Path(__file__).parent


def lay_in(store: Store) -> None:
    """Puts each where a trained network is looked for, by the digest of its recipe; none is opened here."""
    for file in sorted(FOLDER.glob("*.bin")):
        store.put(f"trained/{file.name}", file.read_bytes())
