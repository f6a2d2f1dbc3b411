"""The settings of this room, and the rules that each layer brings."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct, convert

from cru.config.layers import Layer


class RuleLists(Struct, frozen=True):
    """Rules `tool:glob` by what they decide. One that cannot be read raises BadRule, which config reports with its place."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.allow or self.ask or self.deny:
            from cru.permissions.rules import parse_rule

            for text in (*self.allow, *self.ask, *self.deny):
                parse_rule(text)


class PermissionSettings(Struct, frozen=True):
    """The settings of this room.

    mode: a key of modes.MODES
    permissions: the rules of all layers together
    """

    mode: str = "ask"
    permissions: RuleLists = RuleLists()

    def __post_init__(self) -> None:
        if self.mode != "ask":
            from cru.permissions.modes import check_mode

            check_mode(self.mode)


DOCS = {
    "mode": "what may be done without asking: `ask` only reads, `auto` also edits inside the project, `plan` refuses all but "
    "reading, `trust` allows everything (`-t`)",
    "permissions": "rules `tool:glob`; the lists of all layers add up; deny beats ask beats allow",
    "permissions.allow": "calls that need no question; read narrowly",
    "permissions.ask": "calls that need a question in every mode; read broadly",
    "permissions.deny": "calls that are refused in every mode; read broadly",
}


class LayerRules(Struct, frozen=True):
    """The rules of one layer.

    layer: its name
    lists: its rules
    file: its path; "" for the command line
    """

    layer: str
    lists: RuleLists
    file: str = ""


def layer_rules(layers: Iterable[Layer]) -> tuple[LayerRules, ...]:
    """The rules by layer, out of layers that `merge_layers` has accepted; layers without rules are left out."""
    return tuple(
        LayerRules(layer.name, convert(layer.data["permissions"], RuleLists), layer.file)
        for layer in layers
        if isinstance(layer.data.get("permissions"), dict)
    )
