"""Settings of the chat: its colours, and which keys do what."""

from __future__ import annotations

from msgspec import Struct


class ThemeTable(Struct, frozen=True):
    """The setting of the chat's theme: a built-in one, or the name of a file in the home's `themes`."""

    theme: str = "dark"


class ChatKeys(Struct, frozen=True):
    """Keys as `ctrl-g`, `alt-enter`, `f2` or `escape escape`; an empty list: none does it."""

    new_line: tuple[str, ...] = ("alt-enter", "ctrl-j")
    editor: tuple[str, ...] = ("ctrl-g",)
    undo: tuple[str, ...] = ("escape escape",)
    next_mode: tuple[str, ...] = ("shift-tab",)
    paste_image: tuple[str, ...] = ("ctrl-v",)
    interrupt: tuple[str, ...] = ("ctrl-c",)
    suspend: tuple[str, ...] = ("ctrl-z",)
    leave: tuple[str, ...] = ("ctrl-d",)


class KeyTable(Struct, frozen=True):
    """The settings of the chat's keys."""

    keys: ChatKeys = ChatKeys()


DOCS: dict[str, str] = {
    "theme": "colours of the chat: `dark`, `light`, `plain`, or NAME of a file `~/.cru/themes/NAME.toml`",
    "keys": "keys of the chat, as `ctrl-g`, `alt-enter`, `f2` or `escape escape`; `[]` = no key. Each of these tells which keys",
    "keys.new_line": "start a new line",
    "keys.editor": "open the line in `$VISUAL` or `$EDITOR`",
    "keys.undo": "write `/undo` into an empty line",
    "keys.next_mode": "go on to the next mode",
    "keys.paste_image": "paste the image in the clipboard",
    "keys.interrupt": "stop the answer, or clear the line (while an answer runs Ctrl-C and Escape always stop it)",
    "keys.suspend": "suspend cru, as in any program",
    "keys.leave": "leave, in an empty line",
}
