"""THE table of the `cru` namespace: every name, and the typed Python function behind it (imported when first used).

A function may be plain or async; both languages call the same one. An async function looks synchronous in Lua and is awaited in Python.
A name may be a function and hold others (`log`, `shell`, `schedule`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import NamedTuple

from cru.core.api.host import HOST, NotAvailable, Values
from cru.core.command_table import FEATURES

ROOM = "cru.core.api."

STATUSLINE_ITEMS = "mode model context cache status notification align input expr text any when spacer"
"""What a status line of crucible is made of."""

# Name -> `module:function` in this room; those of features are in core/command_table.py.
_NAMES = {
    "fmt": "formatting:fmt",
    "on": "on:on",
    "once": "on:once",
    "off": "on:off",
    "state.set": "state:set_",
    "state.get": "state:get",
    "state.clear": "state:clear",
    "json.encode": "json:encode",
    "json.decode": "json:decode",
    "json.array": "json:array",
    "json_encode": "json:encode",
    "json_decode": "json:decode",
    "log": "log:log",
    "toast": "log:toast",
    "notify": "log:notify",
    "notify_once": "log:notify_once",
    "messages.toggle": "log:messages",
    "messages.show": "log:messages",
    "messages.hide": "log:messages",
    "messages.clear": "log:messages",
    "fs.read": "fs:read",
    "fs.write": "fs:write",
    "fs.append": "fs:append",
    "fs.mkdir": "fs:mkdir",
    "fs.exists": "fs:exists",
    "fs.is_file": "fs:is_file",
    "fs.is_dir": "fs:is_dir",
    "fs.remove": "fs:remove",
    "fs.list": "fs:list_",
    "fs.copy": "fs:copy",
    "fs.rename": "fs:rename",
    "shell": "shell:exec_",
    "shell.exec": "shell:exec_",
    "shell.spawn": "shell:spawn",
    "shell.which": "shell:which",
    "http.get": "http:get",
    "http.post": "http:post",
    "http.put": "http:put",
    "http.patch": "http:patch",
    "http.delete": "http:delete",
    "http.request": "http:request",
    "timer.sleep": "timing:sleep",
    "timer.timeout": "timing:timeout",
    "timer.clock": "timing:clock",
    "tbl_deep_extend": "tables:tbl_deep_extend",
    "tbl_get": "tables:tbl_get",
    "inspect": "formatting:inspect",
    "check.string": "check:string",
    "check.number": "check:number",
    "check.boolean": "check:boolean",
    "check.table": "check:table",
    "check.func": "check:func",
    "check.one_of": "check:one_of",
    "check.settings": "check:settings",
    "emitter.new": "emitter:new",
    "emitter.global": "emitter:global_",
    "retry": "timing:retry",
    "ratelimit.new": "timing:new_bucket",
    "spawn": "schedule:spawn",
    "background.spawn": "background:spawn",
    "background.list": "background:list_",
    "background.get": "background:get",
    "background.cancel": "background:cancel",
    "schedule": "schedule:schedule",
    "schedule.cancel": "schedule:cancel",
    "paths.session": "paths:session",
    "paths.workspace": "paths:workspace",
    "paths.state": "paths:state",
    "paths.join": "paths:join",
    "storage.set": "storage:set_",
    "storage.get": "storage:get",
    "storage.list": "storage:list_",
    "storage.find": "storage:find",
    "storage.delete": "storage:delete",
    "config.get": "config:get",
    "config.set": "config:set_",
    "errors.recent": "health:recent_errors",
    "health.start": "health:start",
    "health.ok": "health:ok",
    "health.info": "health:info",
    "health.warn": "health:warn",
    "health.error": "health:error",
    "health.get_results": "health:get_results",
    "ask.question": "dialogs.ask:question",
    "ask.batch": "dialogs.ask:batch",
    "ask.answer": "dialogs.ask:answer",
    "ask.answer_other": "dialogs.ask:answer_other",
    "ask.notify": "dialogs.ask:notify",
    "ask.ask_user": "dialogs.ask:ask_user",
    "ask.agent": "dialogs.model_answers:agent",
    "popup.entry": "dialogs.popup:entry",
    "popup.entry_with_data": "dialogs.popup:entry_with_data",
    "popup.request": "dialogs.popup:request",
    "popup.request_with_other": "dialogs.popup:request_with_other",
    "popup.response_selected": "dialogs.popup:response_selected",
    "popup.response_other": "dialogs.popup:response_other",
    "popup.response_none": "dialogs.popup:response_none",
    "popup.show": "dialogs.popup:show",
    "ui.item": "dialogs.ui:item",
    "ui.item_with_data": "dialogs.ui:item_with_data",
    "ui.hints": "dialogs.ui:hints",
    "ui.panel": "dialogs.ui:panel",
    "ui.confirm": "dialogs.ui:confirm",
    "ui.select": "dialogs.ui:select",
    "ui.multi_select": "dialogs.ui:multi_select",
    "ui.search": "dialogs.ui:search",
    "ui.result_selected": "dialogs.ui:result_selected",
    "ui.result_other": "dialogs.ui:result_other",
    "ui.result_cancelled": "dialogs.ui:result_cancelled",
    "ui.ask": "dialogs.ui:ask",
    "ui.ask_batch": "dialogs.ui:ask_batch",
    "ui.edit": "dialogs.ui:edit",
    "ui.show": "dialogs.ui:show",
    "ui.popup": "dialogs.ui:popup_",
    "ui.permission": "dialogs.permission:permission",
    "ui.panel_item": "dialogs.ui:item",
    "ui.panel_hints": "dialogs.ui:hints",
    "ui.panel_with_hints": "dialogs.ui:panel",
    "show_panel": "dialogs.ui:show_panel",
    "tools.call": "tools:call",
    "tools.list": "tools:list_",
    "tools.batch": "tools:batch",
    "tools.set_active": "tools:set_active",
    "tools.get_active": "tools:get_active",
    "context.estimate_tokens": "context:estimate_tokens",
    "context.usage": "context:usage",
    "context.compact": "context:compact",
    "context.messages": "context:messages",
    "context.remove": "context:remove",
    "context.attach": "context:attach",
    "sessions.create": "sessions.lifecycle:create",
    "sessions.get": "sessions.lifecycle:get",
    "sessions.list": "sessions.lifecycle:list_",
    "sessions.configure_agent": "sessions.lifecycle:configure_agent",
    "sessions.pause": "sessions.lifecycle:pause",
    "sessions.resume": "sessions.lifecycle:resume",
    "sessions.end_session": "sessions.lifecycle:end_session",
    "sessions.fork": "sessions.lifecycle:fork",
    "sessions.send_message": "sessions.messages:send_message",
    "sessions.send_and_collect": "sessions.messages:send_and_collect",
    "sessions.cancel": "sessions.messages:cancel",
    "sessions.subscribe": "sessions.messages:subscribe",
    "sessions.unsubscribe": "sessions.messages:unsubscribe",
    "sessions.messages": "sessions.messages:messages",
    "sessions.inject": "sessions.messages:inject",
    "sessions.collect_subagents": "sessions.messages:collect_subagents",
    "sessions.complete": "sessions.turns:complete",
    "sessions.undo": "sessions.turns:undo",
    "sessions.can_undo": "sessions.turns:can_undo",
    "sessions.undo_depth": "sessions.turns:undo_depth",
    "sessions.undo_history": "sessions.turns:undo_history",
    "sessions.cache_stats": "sessions.turns:cache_stats",
    "get_session": "session:get_session",
    "on_session_start": "session:on_session_start",
    "on_session_end": "session:on_session_end",
    "permissions.on_request": "permissions:on_request",
    "service.define": "service:define",
    "service.status": "service:status",
    "service.stop": "service:stop",
    "service.list": "service:list_",
    "publish": "publish:publish",
    "set_status": "publish:set_status",
    "clear_status": "publish:clear_status",
    "statusline.set": "publish:statusline_set",
    "statusline.clear": "publish:statusline_clear",
    "oil.text": "oil.nodes:text",
    "oil.col": "oil.nodes:col",
    "oil.row": "oil.nodes:row",
    "oil.spacer": "oil.nodes:spacer",
    "oil.fragment": "oil.nodes:fragment",
    "oil.spinner": "oil.nodes:spinner",
    "oil.progress": "oil.nodes:progress",
    "oil.badge": "oil.nodes:badge",
    "oil.divider": "oil.nodes:divider",
    "oil.hr": "oil.nodes:hr",
    "oil.input": "oil.nodes:input",
    "oil.popup": "oil.nodes:popup",
    "oil.bullet_list": "oil.nodes:bullet_list",
    "oil.numbered_list": "oil.nodes:numbered_list",
    "oil.kv": "oil.nodes:kv",
    "oil.when": "oil.nodes:when",
    "oil.either": "oil.nodes:either",
    "oil.each": "oil.nodes:each",
    "oil.maybe": "oil.nodes:maybe",
    "oil.match_state": "oil.nodes:match_state",
    "oil.component": "oil.nodes:component",
    "oil.scrollback": "oil.nodes:scrollback",
    "oil.if_else": "oil.nodes:either",
    "oil.markup": "oil.markup:markup",
    "options": "options:options",
    "include": "fs:include",
    "on_provider_auth": "session:on_provider_auth",
    "require_isolation": "permissions:require_isolation",
    "hl.set": "oil.groups:set_group",
    "hl.link": "oil.groups:link_group",
    "colorscheme.setup": "publish:setup",
    "syntax.setup": "publish:setup",
    "ui.setup": "publish:setup",
    "statusline.setup": "publish:setup",
    **{f"statusline.{item}": "publish:item" for item in STATUSLINE_ITEMS.split()},
}

# Values, not functions. In Lua, json.null and oq.null are JSON's null; in Python they are None.
_CONSTANTS = {"json.null": "json:NULL", "log.levels": "log:LEVELS"}

# Tables whose other keys are read by `module:function` (key -> value) and, if the second is given, assigned by it (key, value).
INDEXED: dict[str, tuple[str, str]] = {
    "config": (f"{ROOM}config:section", ""),
    "defaults": (f"{ROOM}session:get_default", f"{ROOM}session:set_default"),
    "modes": (f"{ROOM}modes:get", f"{ROOM}modes:set_"),
    **{name: (feature.target(target), "") for feature in FEATURES for name, target in feature.keyed.items()},
}

NAMES = {name: ROOM + target for name, target in _NAMES.items()}
NAMES |= {
    f"{family}.{function.rstrip('_')}".removeprefix("."): feature.target(f"{module}:{function}")
    for feature in FEATURES
    for family, module, functions in feature.names
    for function in functions.split()
}
CONSTANTS = {name: ROOM + target for name, target in _CONSTANTS.items()}
CONSTANTS |= {name: feature.target(target) for feature in FEATURES for name, target in feature.values.items()}
"""The same with the full target, as `load_target` takes it."""


class AbsentAnswer(Enum):
    """What a name answers whose thing is not in this version, in the words of its contract."""

    PAIR = "(nil, why)"
    RAISES = "an error"


class AbsentFamily(NamedTuple):
    """Names of a family whose thing is not there.

    reason: why
    answers: what each name answers
    """

    reason: str
    answers: Mapping[AbsentAnswer, str]


_ABSENT: dict[str, AbsentFamily] = {
    "context.": AbsentFamily("cru validates no replies yet", {AbsentAnswer.PAIR: "register_validator"}),
    "sessions.": AbsentFamily(
        "cru keeps no reviews, checks no replies, and leaves questions to the person",
        {
            AbsentAnswer.PAIR: "interaction_respond set_output_validation review_list_hunks review_set_state "
            "review_comment review_resolve_comment"
        },
    ),
    "ws.": AbsentFamily("cru has no web sockets yet", {AbsentAnswer.RAISES: "connect"}),
}
ABSENT: dict[str, tuple[AbsentAnswer, str]] = {
    f"{prefix}{name}": (answer, family.reason)
    for prefix, family in _ABSENT.items()
    for answer, names in family.answers.items()
    for name in names.split()
}
"""Names that scripts may know from elsewhere: what each answers as long as its thing is not there, and why."""


def make_absent(name: str, answer: AbsentAnswer, reason: str) -> Callable[..., Awaitable[object]]:
    """The function behind a name of ABSENT. In Python it is awaited."""

    async def absent(*_: object, **__: object) -> object:
        tell_absent(name, reason)
        if answer is AbsentAnswer.RAISES:
            raise NotAvailable(f"cru.{name}: {reason}")
        return Values((None, f"cru.{name}: {reason}"))

    return absent


def tell_absent(name: str, reason: str) -> None:
    """Tell a plugin that calls this name without its thing; once a plugin and reason."""
    here = HOST.get(None)
    if here is None:
        return
    reasons = here.session.family_state("absent", set[tuple[str, str]])
    key = (here.plugin.name, reason)
    if key not in reasons:
        reasons.add(key)
        here.problem(f"cru.{name} does nothing: {reason}")
