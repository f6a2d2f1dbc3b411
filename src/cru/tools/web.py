"""The tool `fetch`, and which addresses are sensitive."""

from __future__ import annotations

from cru.net import WholeResponse
from cru.tools.arguments import Fetch
from cru.tools.protocol import ArgumentError, ToolContext, ToolError, ToolOptions, ToolResult, require
from cru.values.errors import CruError

LIMIT = 1024 * 1024
SECONDS = 30.0
TEXT = (
    "text/",
    "application/json",
    "application/xml",
    "application/javascript",
    "application/yaml",
    "application/toml",
)


async def fetch(args: Fetch, running: ToolContext, options: ToolOptions) -> ToolResult:
    """A status other than 2xx is an error that keeps the beginning of the body."""
    host = _host(args.url)
    get = require(running.services.fetch, "fetch")
    why_not = running.services.why_not_fetch

    def allow(url: str) -> None:
        """Leave was given for one address: a redirect may not lead from it into a private network, nor where a rule forbids."""
        if url == args.url:
            return
        why = (sensitive_reason(url) if _host(url) != host else "") or (why_not(url) if why_not else "")
        if why:
            raise ToolError(f"{args.url} leads to {url}, and {why}", "call `fetch` with that address if it is meant")

    try:
        reply = await get(args.url, limit_bytes=LIMIT, timeout=SECONDS, allow=allow)
    except ToolError:
        raise
    except (CruError, OSError) as error:
        raise ToolError(f"cannot get {args.url}: {error}") from error
    kind, charset = _type(reply)
    if not 200 <= reply.status < 300:
        start = _decode(reply.body[:2000], charset)[:500]
        raise ToolError(f"{args.url} answered with status {reply.status}\n{start}".rstrip())
    if not _is_text(kind, reply.body):
        size = f"{len(reply.body):,} bytes"
        raise ToolError(f"{args.url} is not text ({kind or 'unknown type'}, {size})", "get it with `bash` and curl")
    text = _decode(reply.body, charset)
    if "html" in kind:
        from cru.tools.html import plain_text

        text = plain_text(text)
    notes = [f"[from {reply.url}]"] if reply.url != args.url else []
    if reply.truncated:
        notes.append(f"[only the first {LIMIT:,} bytes were read]")
    return ToolResult("\n".join([text or "(empty)", *notes]))


def _host(url: str) -> str:
    """The host of a web address. Raises ArgumentError if it is none."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError as error:
        raise ArgumentError(f"`url`: {error}") from error
    if parts.scheme.lower() not in ("http", "https") or not host:
        raise ArgumentError("`url`: must begin with http:// or https:// and name a host")
    return host


def _type(reply: WholeResponse) -> tuple[str, str]:
    """(media type, charset), lower case; "" for what is missing."""
    value = next((v for k, v in reply.headers.items() if k.lower() == "content-type"), "")
    kind, _, more = str(value).lower().partition(";")
    charset = more.partition("charset=")[2].partition(";")[0].strip(" \"'")
    return kind.strip(), charset


def _is_text(kind: str, body: bytes) -> bool:
    named = kind.startswith(TEXT) or kind.endswith(("+json", "+xml"))
    return named or (kind in ("", "application/octet-stream") and b"\0" not in body[:8192])


def _decode(body: bytes, charset: str) -> str:
    try:
        return body.decode(charset or "utf-8", "replace")
    except LookupError:
        return body.decode("utf-8", "replace")


def sensitive_reason(url: str) -> str:
    """Why a URL needs leave: it leads to this machine or a private network, or cannot be understood; "" if it does not.

    Names are not resolved.
    """
    from ipaddress import ip_address
    from urllib.parse import urlsplit

    try:
        host = (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return "the address cannot be understood"
    if not host:
        return "the address cannot be understood"
    if host == "localhost" or host.endswith(".localhost"):
        return "it is this machine"
    try:
        address = ip_address(_dotted_ip(host))
    except ValueError:
        return ""
    mapped = getattr(address, "ipv4_mapped", None)
    address = mapped or address
    if address.is_loopback or address.is_unspecified:
        return "it is this machine"
    if address.is_link_local:
        return "it is a link-local address, where clouds serve credentials"
    return "it is an address of a private network" if address.is_private else ""


def _dotted_ip(host: str) -> str:
    """IPv4 in the other spellings that resolvers take: 127.1, 0x7f000001, 2130706433, 0177.0.0.1."""
    pieces = host.split(".")
    try:
        numbers = [int(p, 16 if p.startswith("0x") else 8 if p.startswith("0") and len(p) > 1 else 10) for p in pieces]
    except ValueError:
        return host
    if len(numbers) > 4 or any(n > 255 for n in numbers[:-1]):
        return host
    value = sum(n << (24 - 8 * i) for i, n in enumerate(numbers[:-1])) + numbers[-1]
    return ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0)) if value < 1 << 32 else host
