"""`cru.tools`: the tools that the model has, for scripts. Every call goes the road of all calls: hooks hear it, rules and modes hold;
where a rule would ask a person, a script is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

import msgspec

from cru.core.api import plain_data
from cru.core.api.arguments import array, options, table, text, texts
from cru.core.api.dialogs.ui import check_session
from cru.core.api.host import BadArgument, Host, Values, host
from cru.core.api.layers import Layers
from cru.core.base.files.glob import compile_identifier_glob
from cru.core.base.values.errors import CruError
from cru.core.events.answers import PASS, Answer, Change
from cru.core.events.payloads import ToolsSelect
from cru.core.events.stamp import Event
from cru.core.turn.calls import side_calls
from cru.core.turn.calls.batch import group_calls

_ACTIVE = "active_tools"


async def call(name: str, args: dict[str, object] | None = None, opts: dict[str, object] | None = None) -> Values:
    """tools.call(name, args?, {session}?) -> (result text, nil), or (nil, message) if it was refused or failed. The result is whole,
    and does not become part of the conversation.

    Example: cru.tools.call("no_such_tool") --> nil
    """
    where = "cru.tools.call"
    try:
        check_session(where, options(where, opts, ("session",)).get("session"))
        arguments = plain_data.encode(where, table(where, "args", args)).decode()
        done = await side_calls.call(host().parts, text(where, "name", name), arguments, "script")
    except CruError as error:
        return Values((None, error.message))
    return Values((None, done.content) if done.is_error else (done.content, None))


def list_() -> Values:
    """tools.list() -> {{name, description, parameters}, ...}; parameters is a JSON schema. In a call or an event of a
    sub-agent: its tools.

    Example: #cru.tools.list() > 0 --> true
    """
    specs = host().parts.tools.specs()
    return Values(([msgspec.to_builtins(spec) for spec in specs], None))


async def batch(calls: list[dict[str, object]], opts: dict[str, object] | None = None) -> Values:
    """tools.batch({{tool, args}, ...}, {session}?) -> {{result} or {err}, ...} in the same order. Neighbours that may run side by
    side in a reply of the model (docs/turn.md) do; any other call is decided when those before it have run.

    Example: cru.tools.batch({{tool="no_such_tool"}})[1].result --> nil
    """
    where = "cru.tools.batch"
    try:
        check_session(where, options(where, opts, ("session",)).get("session"))
        tables = [table(where, "every call", item) for item in array(where, "calls", calls)]
        named = [(text(where, "tool", item.get("tool")), table(where, "args", item.get("args"))) for item in tables]
    except BadArgument as error:
        return Values((None, error.message))
    groups = group_calls(host().parts.tools, named, [name for name, _ in named])
    done = [result for group in groups for result in await asyncio.gather(*(call(*each) for each in group))]
    return Values(([{"result": result} if error is None else {"err": error} for result, error in done], None))


def set_active(session_id: str | None, patterns: list[str] | None = None) -> Values:
    """tools.set_active(session_id, {globs} | nil) -> true, or (nil, message). From the next prompt on the model is offered only the
    tools that a glob fits, and so are its sub-agents; {} hides all, nil ends it. It can only narrow what is there.

    Example: cru.tools.set_active(nil, nil) --> true
    """
    where = "cru.tools.set_active"
    try:
        check_session(where, session_id)
        globs = None if patterns is None else texts(where, "patterns", patterns)
        for glob in globs or ():
            compile_identifier_glob(glob)
    except CruError as error:
        return Values((None, error.message))
    owner, active = host(), _active_globs(host())
    if globs is None:
        try:
            active.remove(where, _ACTIVE)
        except BadArgument as error:
            return Values((None, error.message))
    else:
        active.set(owner.plugin.name, _ACTIVE, globs)
        owner.own(lambda: active.drop(owner.plugin.name), _ACTIVE)
    return Values((True, None))


def get_active(session_id: str | None = None) -> Values:
    """tools.get_active(session_id) -> the globs that set_active gave, or nil.

    Example: cru.tools.get_active(nil) --> nil
    """
    try:
        check_session("cru.tools.get_active", session_id)
    except BadArgument as error:
        return Values((None, error.message))
    return Values((_active_globs(host()).get(_ACTIVE), None))


def matching_names(names: Sequence[str], globs: Sequence[str]) -> list[str]:
    """The names that one of the globs fits."""
    return [name for name in names if any(compile_identifier_glob(glob)(name) for glob in globs)]


def _active_globs(owner: Host) -> Layers:
    """The globs that plugins gave. The first look registers the handler that heeds them."""

    def make() -> Layers:
        active = Layers()
        narrow = partial(_narrow, active)
        owner.session.parts.bus.registry.on(
            ToolsSelect, narrow, owner="cru", where="cru.tools.set_active", scope="tree"
        )
        return active

    return owner.session.family_state(_ACTIVE, make)


def _narrow(active: Layers, event: Event[ToolsSelect]) -> Answer:
    globs = active.get(_ACTIVE)
    if globs is None:
        return PASS
    return Answer(changes=(Change("tools", "set", matching_names(event.payload.tools, globs)),))
