"""Messages that are not quite JSON or not of the protocol: read with replacements, or made the failure of the request that they answer.

Without this the SDK drops such a message, and its request waits for the whole time-out. Loaded with the first one."""

from __future__ import annotations

import json
import re
from typing import Any

from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter

_SURROGATES = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
"""Escaped backslashes and whole pairs, which stay, and surrogates without a partner."""
_CONTROLS = bytes(code if code >= 32 else 32 for code in range(256))
_ID = r'"id"\s*:\s*(-?\d{1,18}|"[^"\\]{1,200}")'
_VERSION = r'"jsonrpc"\s*:\s*"2\.0"'
_FIRST_ID = re.compile(rf"\s*\{{\s*(?:{_VERSION}\s*,\s*)?{_ID}")
_LAST_ID = re.compile(rf",\s*{_ID}\s*(?:,\s*{_VERSION}\s*)?\}}\s*$")
_EDGE = 1_000
"""Characters at both ends of a message in which its id is looked for, so that no id inside a result is taken for it."""
WHY = "its answer cannot be read: it is no message of the protocol"


def mend(data: bytes) -> bytes:
    """Return JSON in which U+FFFD stands for bytes that are no UTF-8 and for surrogates without a partner."""
    if b"\\u" in data:
        data = _SURROGATES.sub(lambda match: rb"\ufffd" if match[1] else match[0], data)
    return data.decode("utf-8", "replace").encode()


def read_unreadable(data: bytes | str | object) -> JSONRPCMessage | None:
    """Return the message that this was meant to be, else the failure of the request that it answers; None if that is not known.

    data: a text that could not be read, or the value that it is, which is no message"""
    if not isinstance(data, bytes | str):
        return _failure_of(data)
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    mended = mend(raw).translate(_CONTROLS)
    try:
        return jsonrpc_message_adapter.validate_json(mended, by_name=False)
    except ValueError:
        pass  # it is more than single characters: a failure is made of it
    try:
        return _failure_of(json.loads(mended))
    except (ValueError, RecursionError):
        return _failure_of_text(mended.decode())


def _failure_of(value: object) -> JSONRPCError | None:
    if not isinstance(value, dict) or "method" in value:
        return None
    return _failure(value.get("id"))


def _failure_of_text(text: str) -> JSONRPCError | None:
    match = _FIRST_ID.match(text[:_EDGE]) or _LAST_ID.search(text[-_EDGE:])
    if match is None or '"method"' in text[:_EDGE]:
        return None
    return _failure(json.loads(match[1]))


def _failure(identity: Any) -> JSONRPCError | None:
    if isinstance(identity, bool) or not isinstance(identity, int | str):
        return None
    return JSONRPCError(jsonrpc="2.0", id=identity, error=ErrorData(code=PARSE_ERROR, message=WHY))
