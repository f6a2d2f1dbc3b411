"""The keys of the chat's input, beside those of every line editor (Emacs' by default)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from prompt_toolkit.filters import Condition, has_completions, is_searching
from prompt_toolkit.key_binding import KeyBindings

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyPressEvent


class KeyActions(Struct, frozen=True):
    """What keys do.

    enter: Enter
    take_last: Up puts the last prompt that waits into the input; whether there was one
    end_input: Ctrl-D in an empty input
    interrupt: Ctrl-C, and Esc while the model works
    suspend: Ctrl-Z
    next_mode: Shift-Tab
    """

    enter: Callable[[], None]
    take_last: Callable[[], bool]
    end_input: Callable[[], None]
    interrupt: Callable[[], None]
    suspend: Callable[[], Awaitable[None]]
    next_mode: Callable[[], None]


def chat_keys(actions: KeyActions, is_busy: Condition) -> KeyBindings:
    keys = KeyBindings()
    _add_editing(keys, actions)

    @keys.add("c-d")
    def _end(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.delete()
        else:
            actions.end_input()

    @keys.add("c-c", filter=~is_searching)
    @keys.add("escape", filter=is_busy & ~is_searching)
    def _interrupt(event: KeyPressEvent) -> None:
        actions.interrupt()

    @keys.add("s-tab", filter=~is_searching & ~has_completions)
    def _next_mode(event: KeyPressEvent) -> None:
        actions.next_mode()

    @keys.add("c-z")
    def _suspend(event: KeyPressEvent) -> None:
        async def stop() -> None:
            await actions.suspend()

        event.app.create_background_task(stop())

    return keys


def _add_editing(keys: KeyBindings, actions: KeyActions) -> None:
    @keys.add("enter", filter=~is_searching)
    def _enter(event: KeyPressEvent) -> None:
        """A backslash before it makes a new line of it."""
        buffer = event.current_buffer
        if buffer.document.char_before_cursor == "\\":
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            actions.enter()

    @keys.add("escape", "enter")
    @keys.add("c-j")
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("up", filter=~is_searching)
    def _up(event: KeyPressEvent) -> None:
        if not actions.take_last():
            event.current_buffer.auto_up(count=event.arg)

    @keys.add("c-g", filter=~is_searching)
    def _edit(event: KeyPressEvent) -> None:
        event.current_buffer.open_in_editor()
