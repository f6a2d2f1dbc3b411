"""`cru.popup`: entries to choose from, as plain tables."""

from __future__ import annotations

from typing import Any

from cru.core.api.arguments import array, table, text, tostring, whole
from cru.core.api.dialogs.port import show_dialog


def entry(label: str, description: str | None = None) -> dict[str, Any]:
    """popup.entry(label, description?) -> {label, description?}

    Example: cru.popup.entry("Open").label --> "Open"
    """
    item = {"label": text("cru.popup.entry", "label", label)}
    return item if description is None else {**item, "description": tostring(description)}


def entry_with_data(label: str, description: str | None = None, data: object = None) -> dict[str, object]:
    """popup.entry_with_data(label, description, data) -> {label, description?, data}

    Example: cru.popup.entry_with_data("Open", nil, 7).data --> 7
    """
    return {**entry(label, description), "data": data}


def request(title: str, entries: list[object] | None = None) -> dict[str, object]:
    """popup.request(title, entries) -> {title, entries, allow_other = false}

    Example: cru.popup.request("What?", {}).allow_other --> false
    """
    where = "cru.popup.request"
    return {"title": text(where, "title", title), "entries": array(where, "entries", entries), "allow_other": False}


def request_with_other(title: str, entries: list[Any] | None = None) -> dict[str, Any]:
    """popup.request_with_other(title, entries) -> the same with allow_other = true

    Example: cru.popup.request_with_other("What?", {}).allow_other --> true
    """
    return {**request(title, entries), "allow_other": True}


def response_selected(index: int, entry: dict[str, Any]) -> dict[str, Any]:
    """popup.response_selected(index, entry) -> {selected_index, selected_entry}

    Example: cru.popup.response_selected(0, {label="a"}).selected_entry.label --> "a"
    """
    return {"selected_index": whole("cru.popup.response_selected", "index", index), "selected_entry": entry}


def response_other(words: str) -> dict[str, object]:
    """popup.response_other(text) -> {other}

    Example: cru.popup.response_other("neither").other --> "neither"
    """
    return {"other": text("cru.popup.response_other", "text", words)}


def response_none() -> dict[str, object]:
    """popup.response_none() -> {}

    Example: next(cru.popup.response_none()) --> nil
    """
    return {}


async def show(request: dict[str, object]) -> dict[str, object]:
    """popup.show(request) -> {selected_index, selected_entry} with the index from 0, {other}, or {} if nothing was chosen or nobody is
    there. Raises BadArgument.

    Example: next(cru.popup.show(cru.popup.request("What?", {"a"}))) --> nil
    """
    return await choose_entry("cru.popup.show", request, None) or {}


async def choose_entry(where: str, request: dict[str, object], timeout_secs: object) -> dict[str, object] | None:
    """What a person chose; None for nothing. Raises BadArgument."""
    fields = table(where, "request", request)
    entries = [
        item if isinstance(item, dict) else {"label": tostring(item)}
        for item in array(where, "entries", fields.get("entries"))
    ]
    title = tostring(fields.get("title") or "")
    checked = {"title": title, "entries": entries, "allow_other": bool(fields.get("allow_other"))}
    reply = await show_dialog("popup", title, checked, timeout_secs)
    if reply is None:
        return None
    index = reply.get("selected_index")
    if isinstance(index, int) and 0 <= index < len(entries):
        return response_selected(index, entries[index])
    return response_other(reply["other"]) if isinstance(reply.get("other"), str) else None
