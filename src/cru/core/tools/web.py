"""The tool `fetch`, and which addresses are sensitive."""

from __future__ import annotations

from cru.core.base.net import WholeResponse
from cru.core.base.net.web_url import why_not_public
from cru.core.base.values.errors import CruError
from cru.core.tools.arguments import Fetch
from cru.core.tools.html import plain_text
from cru.core.tools.protocol import ToolContext, ToolError, ToolOptions, ToolResult, require
from cru.core.tools.web_leave import WebLeave

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
    get = require(running.services.fetch, "fetch")
    leave = WebLeave(args.url, running.services)
    try:
        reply = await get(
            leave.url, limit_bytes=LIMIT, timeout=SECONDS, allow=leave.check, allow_address=leave.check_address
        )
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
        text = plain_text(text)
    notes = [f"[from {reply.url}]"] if reply.url not in (args.url, leave.url) else []
    if reply.truncated:
        notes.append(f"[only the first {LIMIT:,} bytes were read]")
    return ToolResult("\n".join([text or "(empty)", *notes]))


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
    """Why a URL needs leave of its own: it leads to this machine or a private network, or cannot be understood; "" if it does not.

    Names are not looked up.
    """
    return why_not_public(url)
