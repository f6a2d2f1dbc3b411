"""`cru.hl`: styles by name. A node of `cru.oil` takes the name of a group in the place of a style."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cru.core.api.arguments import table, text
from cru.core.api.host import BadArgument, host
from cru.core.api.layers import Layers
from cru.core.api.oil import style as oil_style
from cru.core.base.config.closest import did_you_mean

MOST_LINKS = 10


def set_group(group: str, style: dict[str, object] | None = None) -> None:
    """hl.set(group, {fg, bg, bold, dim, italic, underline}): what `cru.oil.text("x", "group")` looks like, of all plugins. What is no style
    here is left out. Raises BadArgument.

    Example: cru.hl.set("mode", {fg="cyan"}) --> nil
    """
    where = "cru.hl.set"
    _set(where, group, dict(_known(table(where, "style", style))))


def link_group(group: str, other: str) -> None:
    """hl.link(group, other): the group looks like another one, as that is when a node is made. Raises BadArgument.

    Example: cru.hl.link("mode", "title") --> nil
    """
    where = "cru.hl.link"
    _set(where, group, text(where, "other", other))


def group_style(where: str, name: str) -> dict[str, object]:
    """The style of a group. Raises BadArgument if nobody has set it."""
    groups = _groups()
    value: object = name
    for _ in range(MOST_LINKS):
        value = groups.get(value) if isinstance(value, str) else value
        if isinstance(value, Mapping):
            return dict(value)
    known = [str(group) for group in groups]
    raise BadArgument(
        f"{where}: there is no style `{name}`", did_you_mean(name, known) or "cru.hl.set(name, {fg=…}) makes it"
    )


def _known(fields: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """crucible's groups have more than is drawn here."""
    for key, value in fields.items():
        if key in oil_style.FLAGS and isinstance(value, bool):
            yield key, value
        elif key in ("fg", "bg"):
            try:
                yield key, oil_style.colour("cru.hl.set", value)
            except BadArgument:
                continue


def _set(where: str, group: str, value: object) -> None:
    here, groups = host(), _groups()
    groups.set(here.plugin.name, text(where, "group", group), value)
    here.own(lambda: groups.drop(here.plugin.name), "highlights")


def _groups() -> Layers:
    return host().session.family_state("highlights", Layers)
