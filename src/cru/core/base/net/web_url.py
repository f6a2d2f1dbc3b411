"""Web addresses as the library that connects reads them (the WHATWG URL standard), and which of them lead to the public internet."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from msgspec import Struct

from cru.core.base.net import BadUrl

LONGEST = 16 * 1024
"""Characters of an address that is read; more is refused before anything is decoded."""
_SCHEMES = ("http", "https")
_NAT64 = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))
_COMPATIBLE = ip_network("::/96")
_NOT_PUBLIC = tuple(
    map(
        ip_network,
        ("192.0.0.0/24", "192.88.99.0/24", "fec0::/10", "3fff::/20", "5f00::/16", "2001:10::/28", "2001:20::/28"),
    )
)
"""What IANA's registries of special-purpose addresses name and the tables of some Python versions do not, and what is deprecated."""


class WebUrl(Struct, frozen=True):
    """An http(s) URL as it is connected to.

    host: in ASCII and small letters, without a closing dot; an IPv6 address in brackets
    port: the scheme's own unless the URL names one
    text: the whole URL in the one spelling that all its spellings have
    """

    scheme: str
    host: str
    port: int
    text: str

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port


@lru_cache(maxsize=64)
def parse_web_url(url: str) -> WebUrl:
    """Percent signs, full-width letters, dots of other scripts and numbers of any base in the host are resolved. Raises BadUrl."""
    if len(url) > LONGEST:
        raise BadUrl(f"the address has {len(url):,} characters", f"at most {LONGEST:,} are read")
    from pyreqwest.http import Url

    try:
        parsed = Url(url)
    except ValueError as error:
        raise BadUrl(f"the address cannot be understood: {error}") from error
    if parsed.username or parsed.password:
        raise BadUrl("the address cannot be understood: a user name or password stands in it")
    host = (parsed.host_str or "").removesuffix(".")
    if parsed.scheme not in _SCHEMES or not host or host.endswith("."):
        raise BadUrl("the address cannot be understood: it names no host of the web", "write it as https://host/path")
    port = parsed.port_or_known_default or 0
    shown = host if parsed.port is None else f"{host}:{port}"
    rest = parsed.path + (f"?{parsed.query_string}" if parsed.query_string is not None else "")
    return WebUrl(parsed.scheme, host, port, f"{parsed.scheme}://{shown}{rest}")


def literal_address(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a host of `WebUrl` is, None if it is a name."""
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None


def why_not_public(url: str) -> str:
    """Why an address needs leave of its own: it leads to this machine or a private network, or cannot be understood; "" if it does not.

    Names are not looked up; `why_address_not_public` judges what they lead to.
    """
    try:
        host = parse_web_url(url).host
    except BadUrl:
        return "the address cannot be understood"
    if host == "localhost" or host.endswith(".localhost"):
        return "it is this machine"
    address = literal_address(host)
    return "" if address is None else why_address_not_public(str(address))


def why_address_not_public(text: str) -> str:
    """The same of an IP address in its usual spelling, one with a zone (`fe80::1%eth0`) too. Raises ValueError if it is none."""
    address = inner_address(ip_address(text))
    if address.is_loopback or address.is_unspecified:
        return "it is this machine"
    if address.is_link_local:
        return "it is a link-local address, where clouds serve credentials"
    if address.is_private:
        return "it is an address of a private network"
    if not address.is_global or address.is_multicast or any(address in net for net in _NOT_PUBLIC):
        return "it is no address of the public internet"
    return ""


def why_address_inner(text: str) -> str:
    """Why nobody else may lead to an address that a private network's server could have: it is this machine or link-local; "" if it is
    neither."""
    address = inner_address(ip_address(text))
    is_inner = address.is_loopback or address.is_unspecified or address.is_link_local
    return why_address_not_public(text) if is_inner else ""


def inner_address(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 address stands for (mapped, compatible, NAT64, 6to4, Teredo), else itself."""
    if isinstance(address, IPv4Address):
        return address
    if any(address in net for net in _NAT64) or (address in _COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)
