"""What plugins ask a person, on the terminal (docs/plugin-dialogs.md). Everything is printed and stays in the scrollback; only the
line that is typed can be edited, and but for TERM=dumb a list to choose from changes in its place (list_dialog.py). Loaded with the first
dialog."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from cru.core.api.host import host
from cru.core.base.values.visible import whole_lines
from cru.faces.cli.console import is_dumb_terminal, one_line
from cru.faces.cli.dialogs.choices import Choices, Selection, parse_choice
from cru.faces.cli.dialogs.line_editor import LineEditor
from cru.faces.cli.dialogs.pager import show_paged
from cru.faces.cli.dialogs.text_editor import edit_text
from cru.faces.cli.terminal.keyboard import input_mode

DialogAnswer = dict[str, Any] | None


async def show_dialog(fd: int, kind: str, request: dict[str, Any]) -> DialogAnswer:
    """The person's answer as `cru.core.api.dialogs.port.Dialogs` says; None if they cancelled, or the terminal has gone."""
    with input_mode(fd, "kept"):
        line = LineEditor(fd)
        try:
            line.write(f"\r\n[{one_line(host().plugin.name)}] ")
            answer = await KINDS[kind](line, request)
            line.write("  cancelled\n" if answer is None else "")
        except asyncio.CancelledError:
            with suppress(OSError):  # the terminal may be the reason
                line.write("  closed\n")
            raise
        except OSError:
            return None  # the terminal has gone
        finally:
            line.hand_over()
    return answer


async def _questions(line: LineEditor, request: dict[str, Any]) -> DialogAnswer:
    """One after another; cancelling one cancels all."""
    answers: list[dict[str, Any]] = []
    questions = request["questions"]
    for number, entry in enumerate(questions, 1):
        count = f" ({number} of {len(questions)})" if len(questions) > 1 else ""
        header, question = one_line(str(entry["header"])), entry["question"]
        title = f"{header}{count}: {question}" if header else f"{question}{count}"
        labels = tuple(map(str, entry["choices"]))
        choices = Choices(labels, several=bool(entry["multi_select"]), other=bool(entry["allow_other"]) or not labels)
        selection = await choose(line, title, choices)
        if selection is None:
            return None
        answers.append(_answer(selection))
    return {"answers": answers}


async def _popup(line: LineEditor, request: dict[str, Any]) -> DialogAnswer:
    choices = _choices(request["entries"], other=bool(request["allow_other"]))
    selection = await choose(line, str(request["title"]), choices)
    if selection is None:
        return None
    return {"other": selection.other} if selection.other is not None else {"selected_index": selection.selected[0]}


async def _panel(line: LineEditor, request: dict[str, Any]) -> DialogAnswer:
    hints = request["hints"]
    initial = hints.get("initial_selection")
    count = len(request["items"])
    marked = tuple(at for at in initial or () if isinstance(at, int) and 0 <= at < count)
    several = bool(hints.get("multi_select"))
    choices = _choices(
        request["items"],
        several=several, other=bool(hints.get("allow_other")), filters=bool(hints.get("filterable")),
        marked=marked if several else marked[:1],
    )  # fmt: skip
    selection = await choose(line, str(request["header"]), choices, str(hints.get("initial_filter") or ""))
    return None if selection is None else _answer(selection)


async def _edit(line: LineEditor, request: dict[str, Any]) -> DialogAnswer:
    return await edit_text(line, str(request["content"]), request["format"], str(request.get("hint") or ""))


async def _show(line: LineEditor, request: dict[str, Any]) -> DialogAnswer:
    line.write(f"{one_line(str(request.get('title') or ''))}\n")
    if "view" in request:
        from cru.faces.cli.oil.drawing import draw

        line.write(f"{draw(request['view'], line.fd, '  ')}\n")
        return {}
    return {} if await show_paged(line, str(request["content"]), request["format"]) else None


async def _view(line: LineEditor, request: dict[str, Any]) -> DialogAnswer:
    from cru.faces.cli.dialogs.view_screen import show_view

    return await show_view(line, request["view"])


KINDS: dict[str, Callable[[LineEditor, dict[str, Any]], Awaitable[DialogAnswer]]] = {
    "ask_batch": _questions, "popup": _popup, "panel": _panel, "edit": _edit, "show": _show, "view": _view,
}  # fmt: skip


async def choose(line: LineEditor, title: str, choices: Choices, words: str = "") -> Selection | None:
    """Ask until there is an answer; None if the person cancelled. `words` filter the list at first."""
    first, *more = whole_lines(title)
    line.write("".join([f"{first}\n", *(f"  {text}\n" for text in more)]))
    if not choices.labels and not choices.other:
        line.write("  there is nothing to choose from\n")
        return None
    if choices.labels and not is_dumb_terminal():
        from cru.faces.cli.dialogs.list_dialog import pick

        return await pick(line, choices, words)
    choice_list = ChoiceList(line, choices)
    choice_list.narrow(words)
    while True:
        typed = await line.read(choices.hint(choice_list.marked, len(choice_list.rest)))
        if typed is None or not (typed.strip() or choice_list.marked):
            return None
        choice = choice_list.answer(typed.strip())
        if choice is not None:
            return choice


class ChoiceList:
    """A list while it is on the terminal: `marked` is what Enter takes, `rest` what is not printed yet."""

    def __init__(self, line: LineEditor, choices: Choices) -> None:
        self.marked: tuple[int, ...] = ()
        self.rest: list[int] = []
        self._line, self._choices = line, choices

    def narrow(self, words: str) -> None:
        """List only what has these words; what is the only one left is marked."""
        shown = self._choices.matching(words)
        marked = tuple(at for at in self._choices.marked if at in shown)
        self.marked = tuple(shown) if words and len(shown) == 1 else marked
        self.rest = shown
        if not shown and words:
            self._line.write(f"  nothing matches {one_line(words, 40)}; / alone shows all\n")
        self._page()

    def answer(self, typed: str) -> Selection | None:
        """What was chosen; None if there is more to type."""
        if not typed:
            return Selection(self.marked)
        if typed == "+" and self.rest:
            self._page()
            return None
        if typed.startswith("/") and self._choices.filters:
            self.narrow(typed[1:].strip())
            return None
        choice = parse_choice(self._choices, typed)
        if isinstance(choice, Selection):
            return choice
        self._line.write(f"  {choice}\n")
        return None

    def _page(self) -> None:
        """Print the next screenful."""
        room = max(self._line.rows - 4, 5)
        page, self.rest = self.rest[:room], self.rest[room:]
        self._line.write("".join(f"{text}\n" for text in self._choices.lines(page, self.marked, self._line.columns)))


def _choices(entries: list[dict[str, Any]], *, other: bool = False, several: bool = False, filters: bool = False,
             marked: tuple[int, ...] = ()) -> Choices:  # fmt: skip
    labels = tuple(str(entry.get("label", "")) for entry in entries)
    about = tuple(str(entry.get("description") or "") for entry in entries)
    return Choices(labels, about, several, other, filters, marked)


def _answer(selection: Selection) -> dict[str, Any]:
    answer: dict[str, Any] = {"selected": list(selection.selected)}
    return answer if selection.other is None else {**answer, "other": selection.other}
