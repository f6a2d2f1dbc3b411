"""`cru.ui.permission`: asks the person for leave, through the same asker as the engine's own questions."""

from __future__ import annotations

import asyncio
from typing import Any

from cru.core.api.arguments import options, table, text, texts, tostring
from cru.core.api.dialogs.ui import check_session
from cru.core.api.host import BadArgument, Values, host
from cru.core.base.values.errors import CruError
from cru.core.guard.rules.gate import PermissionSubject
from cru.core.turn.calls import permission as engine

_SCOPES = {"once": "once", "session": "session", "project": "project", "always": "user"}


async def permission(session_id: str | None, opts: dict[str, Any], timeout_secs: Any = None) -> dict[str, Any] | Values:
    """ui.permission(session_id, {action = {type="bash", tokens} | {type="read"|"write", segments} | {type="tool", name, args}}) ->
    {kind = "permission", allowed, scope = "once"|"session"|"project"|"user", pattern?, reason?}; {kind = "cancelled"} where nobody
    can be asked; (nil, message) for bad arguments.

    Example: cru.ui.permission(nil, {action={type="bash", tokens={"ls"}}}).kind --> "cancelled"
    """
    where = "cru.ui.permission"
    try:
        check_session(where, session_id)
        subject = _subject(where, options(where, opts, ("action", "diffs")))
        async with asyncio.timeout(float(timeout_secs or 300)):
            reply = await engine.ask_person(host().parts, subject)
    except (CruError, OSError, ValueError) as error:
        return Values((None, getattr(error, "message", str(error))))
    except TimeoutError:
        reply = None
    if reply is None:
        return {"kind": "cancelled"}
    verdict: dict[str, object] = {
        "kind": "permission",
        "allowed": reply.choice != "no",
        "scope": _SCOPES.get(reply.choice, "once"),
    }
    return {**verdict, **({"reason": reply.reason} if reply.reason else {})}


def _subject(where: str, fields: dict[str, object]) -> PermissionSubject:
    action = table(where, "action", fields.get("action"))
    kind = action.get("type")
    if kind == "bash":
        return PermissionSubject("bash", "shell", " ".join(texts(where, "tokens", action.get("tokens"))), _reason())
    if kind in ("read", "write"):
        path = "/".join(texts(where, "segments", action.get("segments")))
        return PermissionSubject(kind, kind, path, _reason())
    if kind == "tool":
        args = action.get("args")
        return PermissionSubject(
            text(where, "name", action.get("name")), "tool", "" if args is None else tostring(args), _reason()
        )
    raise BadArgument(f"{where}: unknown action `{tostring(kind)}`", "types are bash, read, write, tool")


def _reason() -> str:
    return f"the plugin {host().plugin.name} asks"
