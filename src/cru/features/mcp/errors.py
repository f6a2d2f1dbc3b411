"""What went wrong with a server, in words for a person and the model: what the SDK raises, and how a program ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from cru.core.base.process.errors import StartError, StartProblem
from cru.core.base.values.errors import CruError
from cru.features.mcp import BadServer, CallTimeout, McpError, RequestFailed, SdkMissing, ServerUnavailable
from cru.features.mcp.definition import ServerDefinition
from cru.features.mcp.listing import clean_text

if TYPE_CHECKING:
    from cru.features.mcp.transport import ServerTransport

LONGEST = 1_000
LAST = (BadServer, SdkMissing, StartError)
"""Failures that another attempt would repeat."""


class ConnectionFailure(Struct, frozen=True):
    """Why a connection did not come about, or ended; retries: whether another attempt may help."""

    why: str
    hint: str = ""
    retries: bool = True


def describe_failure(
    error: Exception, definition: ServerDefinition, transport: ServerTransport | None
) -> ConnectionFailure:
    """For the state of a server. Its address, program and secrets do not show."""
    name = definition.name
    leaf = _leaf(error)
    refusal = transport.refusal if transport is not None else None
    if refusal is not None and not isinstance(leaf, BadServer):
        return ConnectionFailure(refusal.message, refusal.hint or f"cru mcp test {name}", retries=False)
    if isinstance(leaf, LAST):
        return ConnectionFailure(leaf.message, leaf.hint or _mend(leaf, definition), retries=False)
    if isinstance(leaf, TimeoutError):
        seconds = definition.server.start_timeout
        last = transport.last_words() if transport is not None else ""
        why = f"it did not answer within {seconds:g} s" + (f" ({last})" if last else "")
        return ConnectionFailure(
            _hide(why, transport), f"mcp.servers.{name}.start_timeout sets how long it may take", retries=False
        )
    why = _words(leaf)
    is_breach = isinstance(leaf, RequestFailed)  # what it did says more than how it was ended for that
    end = transport.describe_end() if transport is not None and not is_breach else ""
    if end and not isinstance(leaf, CruError):
        why = f"it has ended ({end})" if _is_closed(leaf) else f"{why} ({end})"
    elif end:
        why = f"it has ended ({end})"
    hint = f"cru mcp test {name}"
    if _is_unreachable(leaf):
        why, hint = f"its address cannot be reached ({why})", f"does it run? {definition.origin} has its address"
    return ConnectionFailure(_hide(why, transport), hint, retries=is_lost(leaf) or isinstance(leaf, ServerUnavailable))


def _mend(error: Exception, definition: ServerDefinition) -> str:
    """The next step where an attempt would fail again."""
    if isinstance(error, StartError) and error.problem is StartProblem.PROGRAM_NOT_FOUND:
        return f"install it, or give its whole path in {definition.origin}"
    return f"it stands in {definition.origin}"


async def translate_call_error(error: Exception, server: str, what: str, transport: ServerTransport | None) -> McpError:
    """What a call raised."""
    leaf = _leaf(error)
    if isinstance(leaf, McpError):
        return leaf
    code = getattr(leaf, "code", None)
    if _is_timeout(leaf):
        return CallTimeout(f"{what} of {server} did not answer in time")
    refusal = transport.refusal if transport is not None else None
    if refusal is not None:
        return ServerUnavailable(f"the MCP server {server}: {refusal.message}", refusal.hint)
    if is_lost(leaf):
        end = await transport.wait_end() if transport is not None else ""
        text = f"the MCP server {server} has ended{f' ({end})' if end else ''} while {what} was asked: it may have run"
        return ServerUnavailable(_hide(text, transport), "it is started again; then call it again")
    if _is_broken(leaf):
        text = f"the answer of {server} broke off while {what} was asked: it may have run ({_words(leaf)})"
        return RequestFailed(_hide(text, transport))
    number = f" {code}" if isinstance(code, int) else ""
    return RequestFailed(_hide(f"{server} answered {what} with an error{number}: {_words(leaf)}", transport))


def is_lost(error: Exception) -> bool:
    """Whether the connection has gone."""
    leaf = _leaf(error)
    return _is_closed(leaf) or type(leaf).__module__.startswith("httpx2")


def _is_unreachable(error: Exception) -> bool:
    from httpx2 import ConnectError

    return isinstance(error, ConnectError)


def _is_closed(error: Exception) -> bool:
    from anyio import BrokenResourceError, ClosedResourceError
    from mcp_types import CONNECTION_CLOSED

    text = str(error)
    closed = getattr(error, "code", None) == CONNECTION_CLOSED and "closed" in text.lower()
    return closed or isinstance(error, ClosedResourceError | BrokenResourceError) or "Session terminated" in text


def _is_broken(error: Exception) -> bool:
    """Whether an answer came in part, or not at all, over a connection that holds."""
    from mcp_types import CONNECTION_CLOSED

    return getattr(error, "code", None) == CONNECTION_CLOSED


def _is_timeout(error: Exception) -> bool:
    from mcp_types import REQUEST_TIMEOUT

    return isinstance(error, TimeoutError) or getattr(error, "code", None) == REQUEST_TIMEOUT


def _leaf(error: BaseException) -> Exception:
    """The first error in a group that says something."""
    leaves = list(_leaves(error))
    chosen = next((leaf for leaf in leaves if isinstance(leaf, CruError)), None)
    return chosen or next((leaf for leaf in leaves if not _says_nothing(leaf)), leaves[0])


def _leaves(error: BaseException) -> Iterator[Exception]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    elif isinstance(error, Exception):
        yield error
    else:
        yield McpError(type(error).__name__)


def _says_nothing(error: Exception) -> bool:
    return not str(error)


def _words(error: Exception) -> str:
    """A stranger's words, on one line."""
    if isinstance(error, CruError):
        return error.message
    from pydantic import ValidationError

    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        wrong = clean_text(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", 300)
        return f"what it answered is not of the protocol: {wrong}"
    text = clean_text(" ".join(str(error).split()), LONGEST)
    return text or type(error).__name__


def _hide(text: str, transport: ServerTransport | None) -> str:
    return hide_secrets(text, () if transport is None else transport.secrets)


def hide_secrets(text: str, secrets: Iterable[str]) -> str:
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "[secret]")
    return text
