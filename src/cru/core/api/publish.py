"""`cru.publish`, `cru.set_status`, `cru.statusline`: small facts that faces may show. They reach the stream as they change.

crucible's settings for the look of its terminal are accepted and have no effect; a plugin shows a status with `cru.statusline.set`.
"""

from __future__ import annotations

from cru.core.api import plain_data
from cru.core.api.arguments import number, options, text, tostring
from cru.core.api.dialogs.ui import check_session
from cru.core.api.host import BadArgument, Object, host, note_call
from cru.core.api.layers import Layers
from cru.core.base.config.closest import did_you_mean
from cru.core.events.stream import FactPublished, StatusChanged

PUBLISHED = ("targets", "session_title", "isolation")
MOST_KEYS, MOST_CHARACTERS = 16, 256
LEVELS = ("info", "warn", "error")


def publish(key: str, value: object = None) -> None:
    """publish(key, value): keys are targets, session_title and isolation; any JSON value. Raises BadArgument.

    Example: cru.publish("session_title", "A day at sea") --> nil
    """
    if key not in PUBLISHED:
        raise BadArgument(f"cru.publish: unknown key `{tostring(key)}`", did_you_mean(tostring(key), PUBLISHED))
    plain_data.encode("cru.publish", value)
    owner = host()
    facts = owner.session.family_state("published", Layers)
    facts.set(owner.plugin.name, key, value)
    tell = owner.session.parts.bus.stream.tell

    def take_back() -> None:
        for name in facts.drop(owner.plugin.name):
            tell(FactPublished(owner.plugin.name, str(name), facts.get(name)))

    owner.own(take_back, "published")
    tell(FactPublished(owner.plugin.name, key, value))


def set_status(opts: dict[str, object]) -> None:
    """set_status{session?, key, text, level="info"|"warn"|"error", progress?}: one line of a plugin's own; progress is 0 to 1. Raises
    BadArgument.

    Example: cru.set_status({key="sync", text="syncing", progress=0.5}) --> nil
    """
    where = "cru.set_status"
    fields = options(where, opts, ("session", "key", "text", "level", "progress"))
    check_session(where, fields.get("session"))
    level = fields.get("level", "info")
    if level not in LEVELS:
        raise BadArgument(f"{where}: unknown level `{tostring(level)}`", f"levels are {', '.join(LEVELS)}")
    progress = fields.get("progress")
    part = None if progress is None else min(1.0, number(where, "progress", progress, 0))
    key, words = text(where, "key", fields.get("key")), tostring(fields.get("text") or "")
    _set_status(StatusChanged(host().plugin.name, key, words, level, part))


def clear_status(opts: dict[str, object]) -> None:
    """clear_status{session?, key} takes a status back. Raises BadArgument.

    Example: cru.clear_status({key="sync"}) --> nil
    """
    where = "cru.clear_status"
    fields = options(where, opts, ("session", "key"))
    check_session(where, fields.get("session"))
    _set_status(StatusChanged(host().plugin.name, text(where, "key", fields.get("key")), ""))


def statusline_set(session_id: str | None, key: str, value: object) -> dict[str, object]:
    """statusline.set(session_id, key, value) -> {ok = true, value, unchanged}, or {ok = false, reason}. At most 16 keys of 256
    characters each; a longer value is cut.

    Example: cru.statusline.set(nil, "branch", "main").ok --> true
    """
    where = "cru.statusline.set"
    try:
        check_session(where, session_id)
        text(where, "key", key)
    except BadArgument as error:
        return {"ok": False, "reason": error.message}
    line = _statusline()
    words = tostring(value)[:MOST_CHARACTERS]
    if key not in line and len(line) >= MOST_KEYS:
        return {"ok": False, "reason": f"a session takes {MOST_KEYS} keys"}
    unchanged = line.get(key) == words
    line.set(host().plugin.name, key, words)
    if not unchanged:
        _tell(StatusChanged(host().plugin.name, key, words, place="statusline"))
    return {"ok": True, "value": words, "unchanged": unchanged}


def statusline_clear(session_id: str | None, key: str) -> dict[str, object]:
    """statusline.clear(session_id, key) -> {ok = true, unchanged}, or {ok = false, reason}

    Example: cru.statusline.clear(nil, "branch").ok --> true
    """
    where = "cru.statusline.clear"
    try:
        check_session(where, session_id)
        removed = _statusline().remove(where, text(where, "key", key))
    except BadArgument as error:
        return {"ok": False, "reason": error.message}
    if removed:
        _tell(StatusChanged(host().plugin.name, key, _statusline().get(key, ""), place="statusline"))
    return {"ok": True, "unchanged": not removed}


def _statusline() -> Layers:
    here = host()
    line = here.session.family_state("statusline", Layers)
    owner, tell = here.plugin.name, here.session.parts.bus.stream.tell

    def take_back() -> None:
        for key in line.drop(owner):
            tell(StatusChanged(owner, str(key), line.get(key, ""), place="statusline"))

    here.own(take_back, "statusline")
    return line


def _set_status(change: StatusChanged) -> None:
    """Show it, and remember which keys of the plugin say something."""
    here = host()
    statuses = here.session.family_state("status", dict[str, set[str]])
    keys = statuses.setdefault(change.owner, set())
    (keys.add if change.text else keys.discard)(change.key)
    tell = here.session.parts.bus.stream.tell

    def take_back() -> None:
        for key in sorted(statuses.pop(change.owner, ())):
            tell(StatusChanged(change.owner, key, ""))

    here.own(take_back, "status")
    tell(change)


def _tell(change: StatusChanged) -> None:
    host().session.parts.bus.stream.tell(change)


class LookItem(Object):
    """A part of crucible's status line, without effect."""

    METHODS = ("hl",)

    def hl(self, _group: object = None) -> LookItem:
        """The same in the colours of a group."""
        return self


def setup(_look: object = None) -> None:
    """setup{...}: accepted, and without effect.

    Example: cru.statusline.setup({bottom={cru.statusline.mode()}}) --> nil
    """
    note_call()


def item(*_: object) -> LookItem:
    """an item for cru.statusline.setup; item:hl(group) is the same item. Without effect.

    Example: cru.statusline.when(true, cru.statusline.text("x")) ~= nil --> true
    """
    return LookItem()
