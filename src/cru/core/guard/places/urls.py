"""URLs as rules see them. The host is compared as a host, so that no trick of spelling gets another one allowed."""

from __future__ import annotations

from msgspec import Struct, structs

from cru.core.base.files.glob import StarGlob, escape, matches_text, parse_glob
from cru.core.base.net import BadUrl
from cru.core.base.net.web_url import inner_address, literal_address, parse_web_url

_PORTS = {"http": ":80", "https": ":443"}
_OF_HOSTS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-._:[]")


class RuleUrl(Struct, frozen=True):
    """A URL as rules compare it.

    scheme: in small letters
    host: with the port unless it is the scheme's own
    rest: path, query and fragment, as written
    is_ambiguous: programs may disagree on what the URL means
    spellings: the URL as it is connected to, and the same with the IPv4 address that its IPv6 address stands for
    """

    scheme: str
    host: str
    rest: str
    is_ambiguous: bool
    spellings: tuple[str, ...] = ()


def parse_rule_url(url: str) -> RuleUrl:
    """Scheme and host in small letters, without user, closing dot and default port; the host of a web address as it is connected to."""
    scheme, _, behind = url.partition("://")
    cut = min((at for mark in "/?#" if (at := behind.find(mark)) >= 0), default=len(behind))
    authority, rest = behind[:cut], behind[cut:]
    scheme, host = scheme.lower(), authority.rpartition("@")[2].lower()
    host = host.removesuffix(_PORTS.get(scheme, "\0")).rstrip(".")
    is_ambiguous = (
        not scheme.isalnum() or "@" in authority or not _is_host(host) or any(c <= " " or c == "\\" for c in url)
    )
    return _as_connected(url, RuleUrl(scheme, host, rest or "/", is_ambiguous))


def _as_connected(url: str, written: RuleUrl) -> RuleUrl:
    """The host that a web address leads to. An odd spelling of it stays ambiguous: it is asked about, and no allow rule covers it."""
    try:
        parsed = parse_web_url(url)
    except BadUrl:
        return structs.replace(written, is_ambiguous=written.is_ambiguous or written.scheme in _PORTS)
    host = parsed.text.partition("://")[2].partition("/")[0]
    address = literal_address(parsed.host)
    inner = inner_address(address) if address is not None else None
    spellings = [parsed.text]
    if inner is not None and inner != address:
        spellings.append(parsed.text.replace(parsed.host, str(inner), 1))
    return RuleUrl(
        parsed.scheme, host, written.rest, written.is_ambiguous or written.scheme != parsed.scheme, tuple(spellings)
    )


def _is_host(host: str) -> bool:
    port = host.rpartition(":")[2] if ":" in host and not host.endswith("]") else "0"
    return bool(host) and _OF_HOSTS.issuperset(host) and port.isdigit()


def url_is_covered(pattern: str, url: str) -> bool:
    """Whether an allow rule's pattern covers this URL: `https://host/path*`, `https://host` (all of that host), `*`."""
    if pattern == "*":
        return True
    parts = parse_rule_url(url)
    scheme, separator, behind = pattern.partition("://")
    if parts.is_ambiguous or not separator:
        return parse_glob(pattern) == (url,)
    host, slash, path = behind.partition("/")
    if not slash and host.endswith("*") and host.strip("*."):
        host = host.rstrip("*")  # "https://example.com*" means paths, not example.com.elsewhere
    host = host.lower().removesuffix(_PORTS.get(scheme.lower(), "\0"))
    rest = slash + path if slash else "*"
    return (
        matches_text(parse_glob(scheme.lower()), parts.scheme)
        and matches_text(parse_glob(host), parts.host)
        and matches_text(parse_glob(rest), parts.rest)
        and (rest in ("*", "/*") or not _may_leave_folder(parts.rest))
    )


def _may_leave_folder(rest: str) -> bool:
    """Whether the path may lead out of the folder that it seems to be in."""
    path = rest.partition("?")[0].partition("#")[0].lower()
    return "%" in path or ".." in path.split("/")


def url_is_hit(pattern: StarGlob, url: str) -> bool:
    """Whether a deny or ask rule's pattern fits the URL as it is, or as it is meant, or something that begins with it."""
    parts = parse_rule_url(url)
    meant = f"{parts.scheme}://{parts.host}{parts.rest}"
    small = tuple(piece.lower() for piece in pattern)
    texts = dict.fromkeys((url.lower(), meant.lower(), *(text.lower() for text in parts.spellings)))
    return any(matches_text(form, text) for form in (small, (*small, "")) for text in texts)


def suggest_pattern(url: str) -> str:
    """The pattern of everything on this URL's host, "" if its spelling is odd."""
    parts = parse_rule_url(url)
    return "" if parts.is_ambiguous or parts.scheme not in _PORTS else escape(f"{parts.scheme}://{parts.host}/") + "*"
