"""`cru.log`, `cru.toast`, `cru.notify`: telling the person something. Everything goes to the stream that faces read."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Literal

from msgspec import UNSET, UnsetType

from cru.core.api.arguments import lua_type, options, table, tostring
from cru.core.api.host import BadArgument, Object, host
from cru.core.events.stream import Notice

if TYPE_CHECKING:
    from cru.core.base.values.oil.model import OilNode

LEVELS = {"TRACE": 0, "DEBUG": 1, "INFO": 2, "WARN": 3, "ERROR": 4, "OFF": 5}
_NAMES = {"trace": 0, "debug": 1, "info": 2, "warn": 3, "warning": 3, "error": 4, "off": 5}
_OPTIONS = ("progress",)


def log(level: str | int, message: object = "") -> None:
    """log(level, message). Levels debug, info, warn, error, or a number of `cru.log.levels`; an unknown one counts as info.
    Warnings and errors are shown; info and debug with -v.

    Example: cru.log("info", "started") --> nil
    """
    number = _NAMES.get(level.lower(), LEVELS["INFO"]) if isinstance(level, str) else level
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise BadArgument(f"cru.log: level must be a name or a number, got {lua_type(level)}")
    if number >= LEVELS["OFF"]:
        return
    here = host()
    kind = "error" if number >= 4 else "warning" if number >= 3 else "info"
    prefix = "debug: " if number < LEVELS["INFO"] else ""
    here.session.parts.bus.stream.tell(Notice(kind, f"{prefix}{tostring(message)}", here.plugin.name))  # type: ignore[arg-type]


def toast(message: object) -> None:
    """toast(message): a short note that everybody sees, the same as notify(message).

    Example: cru.toast("done") --> nil
    """
    notify(message)


def notify(message: object, level: int | str | None = None, opts: dict[str, object] | None = None) -> None:
    """notify(message, level?=INFO, {progress={current,total}}?). Always shown, whatever the level. The message may be a node of cru.oil.

    Example: cru.notify("copying", 2, {progress={current=1, total=3}}) --> nil
    """
    fields = options("cru.notify", opts, _OPTIONS)
    text, view = shown(message)
    if fields.get("progress") is not None:
        progress = table("cru.notify", "progress", fields["progress"])
        text = f"{text} ({tostring(progress.get('current', 0))}/{tostring(progress.get('total', '?'))})"
        view = _with_bar(view, text, progress)
    number = _NAMES.get(level.lower(), 2) if isinstance(level, str) else level
    here = host()
    # a notice of level "info" is shown only with -v, and a toast is meant for everybody
    kind: Literal["error", "warning"] = "error" if isinstance(number, (int, float)) and number >= 4 else "warning"
    here.session.parts.bus.stream.tell(Notice(kind, text, here.plugin.name, view))


def shown(value: object) -> tuple[str, OilNode | UnsetType]:
    """The text of what a plugin shows, and if it is a node of `cru.oil` how it is drawn."""
    if not isinstance(value, Object):
        return tostring(value), UNSET
    from cru.core.api.oil.nodes import Node
    from cru.core.api.oil.view import view_of
    from cru.core.base.values.oil.layout import plain_text

    if not isinstance(value, Node):
        return tostring(value), UNSET
    view = view_of(value)
    return plain_text(view), view


def _with_bar(view: OilNode | UnsetType, text: str, progress: dict[object, object]) -> OilNode | UnsetType:
    """The message with a bar, where it is known how much there is to do."""
    current, total = progress.get("current", 0), progress.get("total")
    if not isinstance(current, (int, float)) or not isinstance(total, (int, float)) or not 0 < total < inf:
        return view
    from cru.core.base.values.oil.model import ProgressNode, RowNode, TextNode

    shown = TextNode(text=text) if view is UNSET or isinstance(view, UnsetType) else view
    part = min(max(current / total, 0.0), 1.0) if current == current else 0.0
    return RowNode(gap=1, children=(shown, ProgressNode(value=part)))


def notify_once(message: object, level: int | str | None = None, opts: dict[str, object] | None = None) -> bool:
    """notify_once(message, level?, opts?) -> true the first time in a session, false when this text was shown before.

    Example: cru.notify_once("please update") --> true
    """
    here = host()
    owners = here.session.family_state("notified", dict[str, str])
    text, name = tostring(message), here.plugin.name
    if text in owners:
        return False
    owners[text] = name

    def take_back() -> None:
        for known in [text for text, owner in owners.items() if owner == name]:
            del owners[known]

    here.own(take_back, "notified")
    notify(message, level, opts)
    return True


def messages() -> None:
    """messages.toggle(), show(), hide(), clear(): accepted, and without effect: notes are printed in the order in which they come.

    Example: cru.messages.clear() --> nil
    """
