"""`cru.ui`: panels as plain tables, and dialogs with a person. Dialogs give a table with `kind`; {kind = "cancelled"} if the person
cancelled, did not answer in time, or is not there; (nil, message) for bad arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any

from cru.core.api.arguments import array, options, table, text, texts, tostring
from cru.core.api.dialogs import popup
from cru.core.api.dialogs.ask import read_answers as answers_of
from cru.core.api.dialogs.port import show_dialog
from cru.core.api.host import BadArgument, Object, Values, host
from cru.core.api.log import shown
from cru.core.conversations.entries import new_id

FORMATS = ("markdown", "code", "json", "plain")
CANCELLED = {"kind": "cancelled"}
Shown = dict[str, Any] | Values


class Hints(Object):
    """How a panel behaves; each setter gives new hints."""

    METHODS = ("filterable", "multi_select", "allow_other", "initial_selection", "initial_filter")

    def __init__(self, values: dict[str, object] | None = None) -> None:
        self.values = values or {}

    def filterable(self) -> Hints:
        return Hints({**self.values, "filterable": True})

    def multi_select(self) -> Hints:
        return Hints({**self.values, "multi_select": True})

    def allow_other(self) -> Hints:
        return Hints({**self.values, "allow_other": True})

    def initial_selection(self, indices: list[int]) -> Hints:
        return Hints({**self.values, "initial_selection": array("hints:initial_selection", "indices", indices)})

    def initial_filter(self, words: str) -> Hints:
        return Hints({**self.values, "initial_filter": text("hints:initial_filter", "text", words)})


def item(label: str, description: str | None = None) -> dict[str, object]:
    """ui.item(label, description?) -> {label, description?}

    Example: cru.ui.item("Open").label --> "Open"
    """
    return popup.entry(label, description)


def item_with_data(label: str, description: str | None = None, data: object = None) -> dict[str, object]:
    """ui.item_with_data(label, description, data) -> {label, description?, data}

    Example: cru.ui.item_with_data("Open", nil, 7).data --> 7
    """
    return popup.entry_with_data(label, description, data)


def hints() -> Hints:
    """ui.hints() -> hints: h:filterable(), h:multi_select(), h:allow_other(), h:initial_selection{idx}, h:initial_filter(text)

    Example: cru.ui.panel("Files", {}, cru.ui.hints():filterable()).hints.filterable --> true
    """
    return Hints()


def panel(header: str | None, items: object = None, hints: object = None) -> dict[str, object] | Awaitable[Shown]:
    """ui.panel(header, items, hints?) -> {header, items, hints}; items are texts or {label, description?, data?}.
    ui.panel(session_id, {header, items, hints}, timeout_secs=300) shows it: {kind = "panel", cancelled = false, selected, other?}.

    Example: cru.ui.panel("Files", {"a", "b"}).items[2].label --> "b"
    """
    if isinstance(items, dict) and "header" in items:
        return show_panel(items, hints, header)
    where = "cru.ui.panel"
    shown_hints = hints.values if isinstance(hints, Hints) else table(where, "hints", hints)
    return {"header": text(where, "header", header), "items": _items(where, items), "hints": dict(shown_hints)}


def confirm(message: str) -> dict[str, object]:
    """ui.confirm(message) -> a panel with the items Yes and No

    Example: cru.ui.confirm("Sure?").items[1].label --> "Yes"
    """
    return _panel(message, ["Yes", "No"])


def select(header: str, choices: list[object]) -> dict[str, object]:
    """ui.select(header, choices) -> a panel of which one item is chosen

    Example: #cru.ui.select("Way", {"left", "right"}).items --> 2
    """
    return _panel(header, choices)


def multi_select(header: str, choices: list[object]) -> dict[str, object]:
    """ui.multi_select(header, choices) -> a panel of which several items may be chosen

    Example: cru.ui.multi_select("Ways", {"left"}).hints.multi_select --> true
    """
    return _panel(header, choices, multi_select=True)


def search(header: str, items: list[object]) -> dict[str, object]:
    """ui.search(header, items) -> a panel that can be filtered, with words of one's own allowed

    Example: cru.ui.search("Note", {}).hints.filterable --> true
    """
    return _panel(header, items, filterable=True, allow_other=True)


def result_selected(indices: list[int]) -> dict[str, object]:
    """ui.result_selected{indices} -> {cancelled = false, selected}

    Example: cru.ui.result_selected({0}).selected[1] --> 0
    """
    return {"cancelled": False, "selected": array("cru.ui.result_selected", "indices", indices)}


def result_other(words: str) -> dict[str, object]:
    """ui.result_other(text) -> {cancelled = false, other, selected = {}}

    Example: cru.ui.result_other("x").other --> "x"
    """
    return {"cancelled": False, "other": text("cru.ui.result_other", "text", words), "selected": []}


def result_cancelled() -> dict[str, object]:
    """ui.result_cancelled() -> {cancelled = true, selected = {}}

    Example: cru.ui.result_cancelled().cancelled --> true
    """
    return {"cancelled": True, "selected": []}


def _errors_as_values(
    work: Callable[..., Coroutine[object, object, Shown]],
) -> Callable[..., Coroutine[object, object, Shown]]:
    """Bad arguments come back as (nil, message)."""

    @wraps(work)
    async def shown(*args: object) -> Shown:
        try:
            return await work(*args)
        except BadArgument as error:
            return Values((None, error.message))

    return shown


@_errors_as_values
async def show_panel(panel: dict[str, object], timeout_secs: object = None, session_id: str | None = None) -> Shown:
    """show_panel(panel) -> {kind = "panel", cancelled = false, selected = indices from 0, other?}, or {kind = "cancelled", cancelled =
    true, selected = {}}

    Example: cru.show_panel(cru.ui.confirm("Sure?")).cancelled --> true
    """
    where = "cru.ui.panel"
    check_session(where, session_id)
    header = text(where, "header", table(where, "panel", panel).get("header"))
    raw_hints = panel.get("hints")
    known = raw_hints.values if isinstance(raw_hints, Hints) else table(where, "hints", raw_hints)
    request = {"header": header, "items": _items(where, panel.get("items")), "hints": dict(known)}
    reply = await show_dialog("panel", header, request, timeout_secs)
    if reply is None or reply.get("cancelled"):
        return {**CANCELLED, **result_cancelled()}
    result = {"kind": "panel", **result_selected(reply.get("selected") or [])}
    return result if reply.get("other") is None else {**result, "other": reply["other"]}


@_errors_as_values
async def ask(session_id: str | None, opts: dict[str, object], timeout_secs: object = None) -> Shown:
    """ui.ask(session_id, {question, choices?, multi_select, allow_other}, timeout_secs=300) -> {kind = "ask", selected = indices from 0,
    other?}

    Example: cru.ui.ask(nil, {question="Sure?"}).kind --> "cancelled"
    """
    where = "cru.ui.ask"
    check_session(where, session_id)
    fields = options(where, opts, ("question", "choices", "multi_select", "allow_other", "header"))
    reply = await show_dialog("ask_batch", _question(where, fields)["question"],
                               {"id": "", "questions": [_question(where, fields)]}, timeout_secs)  # fmt: skip
    answers = None if reply is None else answers_of(reply)
    if not answers:
        return dict(CANCELLED)
    answer = answers[0]
    result = {"kind": "ask", "selected": answer.selected()}
    return {**result, "other": answer.other()} if answer.has_other() else result


@_errors_as_values
async def ask_batch(session_id: str | None, opts: dict[str, object], timeout_secs: object = None) -> Shown:
    """ui.ask_batch(session_id, {questions = {{header, question, choices, multi_select, allow_other}}}, timeout_secs=300) -> {kind =
    "ask_batch", id, cancelled = false, answers = {{selected, other?}}}

    Example: cru.ui.ask_batch(nil, {questions={{header="A", question="b?"}}}).kind --> "cancelled"
    """
    where = "cru.ui.ask_batch"
    check_session(where, session_id)
    questions = [
        _question(where, table(where, "every question", item))
        for item in array(where, "questions", options(where, opts, ("questions",)).get("questions"))
    ]
    if not questions:
        raise BadArgument(f"{where}: there are no questions")
    batch = new_id()
    request = {"id": batch, "questions": questions}
    reply = await show_dialog("ask_batch", questions[0]["question"], request, timeout_secs)
    answers = None if reply is None else answers_of(reply)
    if answers is None:
        return {**CANCELLED, "cancelled": True, "id": batch}
    items = [{"selected": a.selected(), **({"other": a.other()} if a.has_other() else {})} for a in answers]
    return {"kind": "ask_batch", "id": batch, "cancelled": False, "answers": items}


@_errors_as_values
async def edit(session_id: str | None, opts: dict[str, object], timeout_secs: object = None) -> Shown:
    """ui.edit(session_id, {content, format="markdown"|"code"|"json"|"plain", hint?}, timeout_secs=300) -> {kind = "edit", modified}

    Example: cru.ui.edit(nil, {content="x"}).kind --> "cancelled"
    """
    where = "cru.ui.edit"
    check_session(where, session_id)
    fields = _check_content(where, options(where, opts, ("content", "format", "hint")))
    reply = await show_dialog("edit", tostring(fields.get("hint") or "edit"), fields, timeout_secs)
    return dict(CANCELLED) if reply is None else {"kind": "edit", "modified": tostring(reply.get("modified", ""))}


@_errors_as_values
async def show(session_id: str | None, opts: dict[str, object], timeout_secs: object = None) -> Shown:
    """ui.show(session_id, {content, format?, title?}, timeout_secs=300) -> {kind = "show"} once the person has seen it; the content may
    be a node of cru.oil

    Example: cru.ui.show(nil, {content="x"}).kind --> "cancelled"
    """
    where = "cru.ui.show"
    check_session(where, session_id)
    fields = _take_view(options(where, opts, ("content", "format", "title")))
    fields = _check_content(where, fields)
    reply = await show_dialog("show", tostring(fields.get("title") or "show"), fields, timeout_secs)
    return dict(CANCELLED) if reply is None else {"kind": "show"}


@_errors_as_values
async def popup_(session_id: str | None, opts: dict[str, object], timeout_secs: object = None) -> Shown:
    """ui.popup(session_id, {title, entries, allow_other}, timeout_secs=300) -> {kind = "popup", selected_index, selected_entry} with
    the index from 0, or {kind = "popup", other}

    Example: cru.ui.popup(nil, {title="What?", entries={"a"}}).kind --> "cancelled"
    """
    where = "cru.ui.popup"
    check_session(where, session_id)
    fields = options(where, opts, ("title", "entries", "allow_other"))
    reply = await popup.choose_entry(where, fields, timeout_secs)
    return dict(CANCELLED) if reply is None else {"kind": "popup", **reply}


def check_session(where: str, session_id: object) -> None:
    """That an id means this session; nil does. Raises BadArgument."""
    if session_id is None:
        return
    store = host().session.parts.store
    if text(where, "session_id", session_id) not in ("", store.session_id, store.name):
        raise BadArgument(
            f"{where}: there is no session `{session_id}` here", "use ctx.session_id, or nil for this one"
        )


def _panel(header: str, items: object, **known: object) -> dict[str, object]:
    return {"header": text("cru.ui", "header", header), "items": _items("cru.ui", items), "hints": known}


def _items(where: str, items: object) -> list[dict[str, object]]:
    return [item if isinstance(item, dict) else {"label": tostring(item)} for item in array(where, "items", items)]


def _question(where: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "header": tostring(fields.get("header") or ""),
        "question": text(where, "question", fields.get("question")),
        "choices": texts(where, "choices", fields.get("choices")),
        "multi_select": bool(fields.get("multi_select")),
        "allow_other": bool(fields.get("allow_other")),
    }


def _take_view(fields: dict[str, Any]) -> dict[str, Any]:
    """A node as content is drawn; its plain text stands for it elsewhere."""
    content = fields.get("content")
    if not isinstance(content, Object) or content.as_text() is None:
        return fields
    text, view = shown(content)
    return {**fields, "content": text, "view": view}


def _check_content(where: str, fields: dict[str, Any]) -> dict[str, Any]:
    text(where, "content", fields.get("content"))
    kind = fields.get("format", "plain")
    if kind not in FORMATS:
        raise BadArgument(f"{where}: unknown format `{tostring(kind)}`", f"formats are {', '.join(FORMATS)}")
    return {**fields, "format": kind}
