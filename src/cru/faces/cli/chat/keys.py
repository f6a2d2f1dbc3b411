"""The keys of the chat's input, beside those of every line editor (Emacs' by default)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from prompt_toolkit.filters import Condition, FilterOrBool, has_completions, is_searching
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.keys import ALL_KEYS, KEY_ALIASES, Keys

from cru.core.compose.chat_settings import ChatKeys

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyPressEvent

PREFIXES = {"ctrl-": "c-", "control-": "c-", "shift-": "s-", "alt-": "escape ", "meta-": "escape ", "esc ": "escape "}
TYPING = ("c-m", "c-h", "c-i", "up", "down", "left", "right", "home", "end", "delete", "c-@")
"""Enter, Backspace, Tab, and what moves in the text."""
EXAMPLES = "`ctrl-g`, `alt-enter`, `shift-tab`, `f2`, `escape escape`"
Handler = Callable[["KeyPressEvent"], None]
Sequence = tuple[str, ...]


class KeyActions(Struct, frozen=True):
    """What keys do.

    enter: Enter
    take_last: Up puts the last prompt that waits into the input; whether there was one
    paste: what the terminal marks as pasted
    remove_paste: Backspace takes away what stands for a paste before the cursor; whether there was one
    paste_image: the image in the clipboard
    editor: opens the input in an editor
    undo: asks for the undo of a turn
    end_input: leaves
    interrupt: Ctrl-C, and Esc while the model works
    suspend: Ctrl-Z
    next_mode: Shift-Tab
    """

    enter: Callable[[], None]
    take_last: Callable[[], bool]
    paste: Callable[[str], None]
    remove_paste: Callable[[], bool]
    paste_image: Callable[[], None]
    editor: Callable[[], None]
    undo: Callable[[], None]
    end_input: Callable[[], None]
    interrupt: Callable[[], None]
    suspend: Callable[[], Awaitable[None]]
    next_mode: Callable[[], None]


def parse_key(text: str) -> Sequence | None:
    """A key, or several after each other, as the line editor calls them; None: there is no such key."""
    for prefix, short in PREFIXES.items():
        text = text.lower().replace(prefix, short)
    words = tuple(KEY_ALIASES.get(word, word) for word in text.split())
    is_known = bool(words) and all(len(word) == 1 or word in ALL_KEYS for word in words)
    return words if is_known else None


def unknown_keys(settings: ChatKeys) -> Iterator[str]:
    """What the settings name that is no key, is needed for typing, or is named twice, in words."""
    users: dict[Sequence, str] = {}
    for action, texts in msgspec.structs.asdict(settings).items():
        for text in texts:
            sequence = parse_key(text)
            if sequence is None:
                yield f"keys.{action}: there is no key `{text}`; as {EXAMPLES}"
            elif is_for_typing(sequence):
                yield f"keys.{action}: `{text}` is for typing, and does nothing else; as {EXAMPLES}"
            elif users.setdefault(sequence, action) != action:
                yield f"keys.{action}: `{text}` stands at keys.{users[sequence]}, too; take it out of one of them"


def is_for_typing(sequence: Sequence) -> bool:
    """Whether its first key is text, or edits it: whoever types must not do anything else by it."""
    return len(sequence[0]) == 1 or sequence[0].startswith("<") or sequence[0] in TYPING


def chat_keys(actions: KeyActions, is_busy: Condition, is_empty: Condition, settings: ChatKeys) -> KeyBindings:
    keys = KeyBindings()
    _add_editing(keys, actions)

    def add(texts: tuple[str, ...], handler: Handler, when: FilterOrBool = ~is_searching) -> None:
        for sequence in filter(None, map(parse_key, texts)):
            if not is_for_typing(sequence):
                keys.add(*sequence, filter=when)(handler)

    def leave(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.delete()
        else:
            actions.end_input()

    def suspend(event: KeyPressEvent) -> None:
        async def stop() -> None:
            await actions.suspend()

        event.app.create_background_task(stop())

    add(settings.leave, leave, True)
    add(settings.interrupt, lambda _: actions.interrupt())
    add(settings.undo, lambda _: actions.undo(), ~is_busy & is_empty & ~is_searching)
    add(settings.next_mode, lambda _: actions.next_mode(), ~is_searching & ~has_completions)
    add(settings.new_line, lambda event: event.current_buffer.insert_text("\n"), True)
    add(settings.paste_image, lambda _: actions.paste_image())
    add(settings.editor, lambda _: actions.editor())
    add(settings.suspend, suspend, True)
    add(("escape", "ctrl-c"), lambda _: actions.interrupt(), is_busy & ~is_searching)  # the last one counts
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

    @keys.add("up", filter=~is_searching)
    def _up(event: KeyPressEvent) -> None:
        if not actions.take_last():
            event.current_buffer.auto_up(count=event.arg)

    @keys.add(Keys.BracketedPaste, filter=~is_searching)
    def _paste(event: KeyPressEvent) -> None:
        actions.paste(event.data.replace("\r\n", "\n").replace("\r", "\n"))

    @keys.add("backspace", filter=~is_searching)
    def _backspace(event: KeyPressEvent) -> None:
        if not actions.remove_paste():
            event.current_buffer.delete_before_cursor(count=event.arg)
