"""THE table of the `cru` namespace: every name, and the typed Python function behind it (imported when first used).

A target is `module:function` in this room. A function may be plain or async; both languages call the same one. An async function looks
synchronous in Lua and is awaited in Python. A name may be a function and hold others (`log`, `shell`, `schedule`).
"""

from __future__ import annotations

NAMES: dict[str, str] = {
    "fmt": "fmt:fmt",
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
    "timer.sleep": "timer:sleep",
    "timer.timeout": "timer:timeout",
    "timer.clock": "timer:clock",
    "tbl_deep_extend": "tables:tbl_deep_extend",
    "tbl_get": "tables:tbl_get",
    "inspect": "inspect:inspect",
    "check.string": "check:string",
    "check.number": "check:number",
    "check.boolean": "check:boolean",
    "check.table": "check:table",
    "check.func": "check:func",
    "check.one_of": "check:one_of",
    "emitter.new": "emitter:new",
    "emitter.global": "emitter:global_",
    "retry": "retry:retry",
    "ratelimit.new": "ratelimit:new",
    "spawn": "schedule:spawn",
    "schedule": "schedule:schedule",
    "schedule.cancel": "schedule:cancel",
    "paths.kiln": "paths:kiln",
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
    "errors.recent": "errors:recent",
    "health.start": "health:start",
    "health.ok": "health:ok",
    "health.info": "health:info",
    "health.warn": "health:warn",
    "health.error": "health:error",
    "health.get_results": "health:get_results",
}

# Values, not functions. In Lua, json.null and oq.null are JSON's null; in Python they are None.
CONSTANTS: dict[str, str] = {
    "json.null": "json:NULL",
    "log.levels": "log:LEVELS",
}

# Tables whose other keys are read by `module:function` (key -> value) and, if the second is given, assigned by it (key, value).
INDEXED: dict[str, tuple[str, str]] = {
    "config": ("config:section", ""),
}

# Names that scripts may know from elsewhere and that are not available yet; calling one raises NotAvailable.
LATER: frozenset[str] = frozenset(
    f"{family}.{name}"
    for family, names in {
        "vault": "list get search outlinks backlinks neighbors create_note",
        "kiln": "list get search outlinks backlinks neighbors create_note",
        "graph": "find outlinks inlinks note_get note_list db_find db_outlinks db_inlinks db_neighbors db_query fast_outlinks "
        "fast_backlinks fast_neighbors",
        "mcp": "list_tools call call_json servers has_tool",
        "background": "spawn",
        "sessions": "create get list configure_agent send_message cancel pause resume end_session send_and_collect complete "
        "subscribe unsubscribe interaction_respond messages inject collect_subagents fork cache_stats set_output_validation undo "
        "can_undo undo_depth undo_history review_list_hunks review_set_state review_comment review_resolve_comment",
        "ws": "connect",
    }.items()
    for name in names.split()
)


def later(name: str) -> Exception:
    """What calling a name of LATER raises."""
    from cru.namespace.host import NotAvailable

    return NotAvailable(f"cru.{name} is not available yet")
