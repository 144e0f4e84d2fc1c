"""Which address a request came from, in the one form by which addresses are counted."""

from __future__ import annotations

import ipaddress
import re

from rest_framework.request import Request

INSIDE = tuple(
    ipaddress.ip_network(network)
    for network in ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")
)
"""Networks of our own proxies."""
WITH_PORT = re.compile(r"(\d+\.\d+\.\d+\.\d+):\d{1,5}|\[([^\]]*)\](?::\d{1,5})?")
NETWORK_BITS = 64
"""A customer gets at least so much of IPv6: all its addresses count as one."""
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def client_address(request: Request) -> str:
    """The address that a request came from; empty for the machine itself, where simulated people live.

    X-Forwarded-For is believed only from a proxy in our own network, and only its last part, which that proxy
    wrote. If that part is no address, the proxy's own counts: what cannot be read must not be a new sender
    each time. IPv6 is told by its network of 64 bits.
    """
    near = str(request.META.get("REMOTE_ADDR", ""))
    peer = _parse_address(near)
    if peer is not None and not _is_inside(peer):
        return _address_group(peer)
    header = request.headers.get("X-Forwarded-For", "").strip()
    if header:
        forwarded = _parse_address(header.rsplit(",", 1)[-1])
        return _address_group(forwarded) if forwarded is not None else near or "socket"
    return "" if peer is None or peer.is_loopback else _address_group(peer)


def is_told(request: Request) -> bool:
    """Whether the address says who came. One of our own network that no proxy explains may stand for all
    people behind a proxy that does not say for whom it asks."""
    peer = _parse_address(str(request.META.get("REMOTE_ADDR", "")))
    return (peer is not None and not _is_inside(peer)) or bool(request.headers.get("X-Forwarded-For"))


def _parse_address(text: str) -> Address | None:
    """An address, also with a port behind it; IPv4 within IPv6 is IPv4."""
    plain = text.strip()
    if match := WITH_PORT.fullmatch(plain):
        plain = match[1] or match[2]
    try:
        address = ipaddress.ip_address(plain.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _address_group(address: Address) -> str:
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    return str(ipaddress.ip_network((address, NETWORK_BITS), strict=False))


def around(address: str, bits: int) -> str:
    """The network of so many bits around an address of IPv6, as `client_address` gives it; empty for
    others."""
    try:
        return str(ipaddress.IPv6Network(address).supernet(new_prefix=bits))
    except ValueError:
        return ""


def _is_inside(address: Address) -> bool:
    return any(address in network for network in INSIDE)
