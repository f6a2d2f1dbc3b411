"""`cru.http`: requests to anywhere. Nothing here raises for what the network does: a failure is a table with `ok = false`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cru.core.api.arguments import number, options, table, text, tostring
from cru.core.api.host import BadArgument, host
from cru.core.base.net import NetError
from cru.core.base.net.redirects import InwardLeave
from cru.core.base.net.transport import Transport

if TYPE_CHECKING:
    from cru.core.base.net.transport import Reach, RedirectLeave

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
TIMEOUT = 30.0
_OPTIONS = ("headers", "body", "timeout")


async def get(url: str, opts: dict[str, object] | None = None) -> dict[str, object]:
    """http.get(url, {headers, body, timeout=30}?) -> {status, ok, headers, body}; header names in lower case, ok for 200 to 299.
    If there is no answer: {ok=false, status=0, body="", headers={}, error}. Redirects are followed, ten at most, and
    not further into this machine or a private network than the server is that sends them. Raises BadArgument only.

    Example: cru.http.get("not a url").ok --> false
    """
    return await _send("cru.http.get", "GET", url, opts)


async def post(url: str, opts: dict[str, object] | None = None) -> dict[str, object]:
    """http.post(url, {headers, body, timeout}?) -> as get. The body is sent as it is.

    Example: cru.http.post("not a url", {body="{}"}).status --> 0
    """
    return await _send("cru.http.post", "POST", url, opts)


async def put(url: str, opts: dict[str, object] | None = None) -> dict[str, object]:
    """http.put(url, opts?) -> as get.

    Example: cru.http.put("not a url").ok --> false
    """
    return await _send("cru.http.put", "PUT", url, opts)


async def patch(url: str, opts: dict[str, object] | None = None) -> dict[str, object]:
    """http.patch(url, opts?) -> as get.

    Example: cru.http.patch("not a url").ok --> false
    """
    return await _send("cru.http.patch", "PATCH", url, opts)


async def delete(url: str, opts: dict[str, object] | None = None) -> dict[str, object]:
    """http.delete(url, opts?) -> as get.

    Example: cru.http.delete("not a url").ok --> false
    """
    return await _send("cru.http.delete", "DELETE", url, opts)


async def request(opts: dict[str, object]) -> dict[str, object]:
    """http.request{url, method="GET", headers, body, timeout} -> as get; also HEAD and OPTIONS.

    Example: cru.http.request({url="not a url", method="HEAD"}).ok --> false
    """
    where = "cru.http.request"
    fields = options(where, opts, ("url", "method", *_OPTIONS))
    method = tostring(fields.pop("method", None) or "GET").upper()
    if method not in METHODS:
        raise BadArgument(f"{where}: unknown method `{method}`", f"methods are {', '.join(METHODS)}")
    return await _send(where, method, fields.pop("url", None), fields)


async def _send(where: str, method: str, url: Any, opts: Any) -> dict[str, Any]:
    text(where, "url", url)
    fields = options(where, opts, _OPTIONS)
    headers = {str(k).lower(): tostring(v) for k, v in table(where, "headers", fields.get("headers")).items()}
    body = fields.get("body")
    data = b"" if body is None else tostring(body).encode("utf-8", "surrogateescape")
    timeout = number(where, "timeout", fields.get("timeout", TIMEOUT), 0)
    try:
        answer = await _transport().request(method, url, headers, data, timeout=timeout, leave=_leave())
    except (NetError, OSError) as error:
        why = error.message if isinstance(error, NetError) else str(error)
        return {"ok": False, "status": 0, "body": "", "headers": {}, "error": why}
    return {
        "status": answer.status,
        "ok": 200 <= answer.status <= 299,
        "headers": dict(answer.headers),
        "body": answer.body.decode("utf-8", "surrogateescape"),
    }


def _leave() -> RedirectLeave:
    """Made at the first redirect, since most requests have none."""
    judges: list[RedirectLeave] = []
    rules = host().parts.tool_services.rules.web

    def judge(url: str, target: str) -> Reach | None:
        if not judges:
            judges.append(InwardLeave(rules().is_named if rules is not None else lambda url: False))
        return judges[0](url, target)

    return judge


def _transport() -> Transport:
    """The session's transport, if it is lent one; without one, a transport of the namespace's own."""
    session = host().session
    make_transport = session.parts.models.transport
    if make_transport is not None:
        return make_transport()
    return session.family_state("transport", Transport)
