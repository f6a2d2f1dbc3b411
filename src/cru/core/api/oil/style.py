"""The closed lists of `cru.oil`: style keys, colours, borders, ways to align."""

from __future__ import annotations

import re

from cru.core.api.arguments import lua_type, options, tostring, whole
from cru.core.api.host import BadArgument
from cru.core.base.config.closest import did_you_mean

FLAGS = ("bold", "dim", "italic", "underline")
COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "gray", "darkgray", "reset")
SPELLINGS = {"grey": "gray", "darkgrey": "darkgray", "dark_gray": "darkgray", "dark_grey": "darkgray"}
BORDERS = ("single", "double", "rounded", "heavy")
JUSTIFY = ("start", "end", "center", "space_between", "space_around", "space_evenly")
ALIGN = ("start", "end", "center", "stretch")
_SIZES = ("gap", "padding", "margin")
_HEX = re.compile(r"#[0-9a-f]{6}")
_RGB = re.compile(r"rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)")


def style(where: str, fields: object) -> dict[str, object]:
    """A style that is all right. Raises BadArgument."""
    checked: dict[str, object] = {}
    for key, value in options(where, fields, ("fg", "bg", *FLAGS)).items():
        if key in FLAGS and not isinstance(value, bool):
            raise BadArgument(f"{where}: {key} must be a boolean, got {lua_type(value)}")
        checked[key] = value if key in FLAGS else colour(where, value)
    return checked


def colour(where: str, value: object) -> str:
    """A colour by its plain name, or as #rrggbb. Raises BadArgument."""
    name = value.lower().replace("-", "_") if isinstance(value, str) else ""
    name = SPELLINGS.get(name, name)
    rgb = _RGB.fullmatch(name)
    if rgb is not None and all(int(part) < 256 for part in rgb.groups()):
        return "#" + "".join(f"{int(part):02x}" for part in rgb.groups())
    if name in COLOURS or _HEX.fullmatch(name):
        return name
    raise BadArgument(
        f"{where}: unknown colour `{tostring(value)}`", did_you_mean(name, COLOURS) or "or write it as #rrggbb"
    )


def container(where: str, fields: dict[str, object]) -> dict[str, object]:
    """The properties of a container; colours that are none are dropped here."""
    known = options(where, fields, (*_SIZES, "border", "justify", "align", "fg", "bg", "bold"))
    checked: dict[str, object] = {
        name: whole(where, name, known[name], 0) for name in _SIZES if known.get(name) is not None
    }
    if known.get("border"):
        checked["border"] = border(known["border"])
    if known.get("justify") is not None:
        checked["justify"] = justify(where, known["justify"])
    if known.get("align") is not None:
        checked["align"] = align(where, known["align"])
    for name in ("fg", "bg"):
        try:
            checked.update({name: colour(where, known[name])} if known.get(name) is not None else {})
        except BadArgument:
            continue
    return {**checked, "bold": True} if known.get("bold") is True else checked


def border(kind: object) -> str:
    """A border; `true` and an unknown one are single."""
    return kind if kind in BORDERS else "single"


def justify(where: str, how: object) -> str:
    return _one_of(where, "justify", how, JUSTIFY)


def align(where: str, how: object) -> str:
    return _one_of(where, "align", how, ALIGN)


def _one_of(where: str, name: str, value: object, known: tuple[str, ...]) -> str:
    choice = value.replace("-", "_") if isinstance(value, str) else ""
    if choice not in known:
        raise BadArgument(f"{where}: {name} must be one of {', '.join(known)}, got {tostring(value)}")
    return choice
