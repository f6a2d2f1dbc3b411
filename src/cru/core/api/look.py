"""How crucible's terminal looks: colours, the parts of its status line. All of it is accepted, and has no effect. What a
plugin wants to say there goes through `cru.statusline.set`."""

from __future__ import annotations

from cru.core.api.host import Object, note_call


class LookItem(Object):
    """A part of a status line."""

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
