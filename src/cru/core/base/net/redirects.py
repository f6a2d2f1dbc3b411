"""Where a server may send a request on to that a person or a plugin has sent to it."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_network

from cru.core.base.net import BadUrl, split_url
from cru.core.base.net.transport import Reach
from cru.core.base.net.web_url import (
    WebUrl,
    inner_address,
    literal_address,
    parse_web_url,
    why_address_not_public,
    why_not_public,
)


def within_origin(url: str, target: str) -> None:
    """A leave for redirects within one server. Raises BadUrl."""
    here, there = split_url(url), split_url(target)
    if (here.host, here.port) != (there.host, there.port):
        raise BadUrl(
            f"{here.authority} leads to {there.authority}, which is not asked", "set that address if it is meant"
        )


_PRIVATE = tuple(map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")))
"""What people give to machines of theirs."""


class InwardLeave:
    """A leave for all redirects that lead no further in: what answers from the public internet, or by a name, leads to public addresses
    only, an address of a private network to such ones, too, and this machine to all but link-local ones. Raises BadUrl.

    is_named: whether a rule opens an address"""

    def __init__(self, is_named: Callable[[str], bool]) -> None:
        self._is_named = is_named
        self._reach: Reach | None = None
        self._first = ""

    def __call__(self, url: str, target: str) -> Reach | None:
        here, there = parse_web_url(url), parse_web_url(target)
        self._first = self._first or url
        if here.host != there.host:
            why = why_not_public(target)
            if why and _depth(there) > min(_depth(here), 2) and not self._is_named(there.text):
                raise BadUrl(f"{here.host} leads to {there.host}, and {why}", _rule(there))
            self._reach = Reach(allow_address=self._check_address)
        return self._reach

    def _check_address(self, url: str, address: str) -> None:
        """An address that a host's name leads to."""
        why = why_address_not_public(address)
        if not why or why_not_public(url):  # the address itself was judged
            return
        there = parse_web_url(url)
        if there.host != parse_web_url(self._first).host and not self._is_named(there.text):
            raise BadUrl(f"{there.host} leads to {address}, and {why}", _rule(there))


def _depth(url: WebUrl) -> int:
    """How far inside a host is: 0 the public internet, or a name; 1 a private network; 2 this machine; 3 what nobody is led to."""
    if url.host == "localhost" or url.host.endswith(".localhost"):
        return 2
    address = literal_address(url.host)
    if address is None or not why_address_not_public(str(address)):
        return 0
    address = inner_address(address)
    if address.is_loopback or address.is_unspecified:
        return 2
    return 1 if any(address in network for network in _PRIVATE if network.version == address.version) else 3


def _rule(url: WebUrl) -> str:
    return f'only a rule opens it: allow = ["fetch:{url.scheme}://{url.host}/*"] in [permissions]'
