"""Which hosts confined programs may reach: `[sandbox] hosts`, judged as the host is connected to (docs/sandbox.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from ipaddress import ip_address

from msgspec import Struct

from cru.core.base.net.web_url import inner_address, literal_address, why_address_not_public

_RULE = re.compile(
    r"(?P<wild>\*\.)?(?P<name>(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
)
WEB_PORTS = (80, 443)
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class HostRule(Struct, frozen=True):
    """One host, or all below a name.

    text: as it was written
    name: a name in ASCII and small letters, or an address; one of IPv6 in brackets
    is_wildcard: it means all names below this one, not the name itself
    port: the only one that it means; 0: those of the web
    """

    text: str
    name: str
    is_wildcard: bool = False
    port: int = 0

    @property
    def is_of_this_machine(self) -> bool:
        """Whether it is one port of this machine's loopback."""
        return self.name in LOOPBACK and self.port != 0

    def means(self, host: str, port: int) -> bool:
        """`host`: as `cru.core.base.net.web_url.WebUrl` has it."""
        is_name = host.endswith(f".{self.name}") if self.is_wildcard else host == self.name
        return is_name and (port == self.port if self.port else port in WEB_PORTS)


def parse_rules(texts: Iterable[str]) -> tuple[HostRule, ...]:
    """Raises ValueError that says what to write instead."""
    return tuple(_parse_rule(text) for text in texts)


def check_hosts(texts: Iterable[str], *, has_network: bool | None) -> None:
    """Raise ValueError for hosts that cannot be used, or that mean nothing since every host is reached."""
    parse_rules(texts)
    if has_network:
        raise ValueError("`network = true` reaches every host, so `hosts` would mean nothing: leave one of them out")


def _parse_rule(text: str) -> HostRule:
    if text == "*":
        raise ValueError("`*` in `hosts` would be every host; write network = true if you mean that")
    match = _RULE.fullmatch(text)
    port = int(match["port"] or 0) if match else 0
    if match is None or port > 65535:
        raise ValueError(
            f"`{text}` in `hosts` is no host; write pypi.org, *.npmjs.org or localhost:5432, in small letters (other scripts as xn--…)"
        )
    if match["wild"] and ("." not in match["name"] or match["name"].replace(".", "").isdigit()):
        raise ValueError(f"`{text}` in `hosts` would be about far too many; write *.example.org")
    return HostRule(text, match["name"], bool(match["wild"]), port)


def find_rule(rules: Sequence[HostRule], host: str, port: int) -> HostRule | None:
    return next((rule for rule in rules if rule.means(host, port)), None)


def why_address_refused(rule: HostRule, address: str) -> str:
    """Why a host that the rule means may not be reached at this address; "" if it may.

    Public addresses only, but for what the rule writes out: a host by its name may be in a private network, `localhost` and addresses are
    what they say. No name leads to this machine or to a link-local address by itself.
    """
    why = why_address_not_public(address)
    if not why or (not rule.is_wildcard and (rule.name == "localhost" or literal_address(rule.name) is not None)):
        return ""
    inner = inner_address(ip_address(address))
    is_here = inner.is_loopback or inner.is_unspecified or inner.is_link_local or inner.is_multicast
    return "" if not rule.is_wildcard and inner.is_private and not is_here else why
