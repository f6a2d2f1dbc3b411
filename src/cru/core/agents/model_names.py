"""Which model an agent asks: names of cards and calls, those of Claude Code's families too, which no provider knows as they are."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping

from msgspec import Struct

FAMILIES = ("sonnet", "opus", "haiku", "fable", "mythos", "best", "opusplan", "default")
"""What Claude Code's cards call its models, whatever their version."""
INHERIT = "inherit"


class NamedModels(Struct, frozen=True):
    """aliases: `[agents.model_aliases]`. known: names that the settings give to models, categories too."""

    aliases: Mapping[str, str] = {}
    known: Callable[[], Collection[str]] = tuple


class AgentModel(Struct, frozen=True):
    """name: "": its parent's. problem: what a person should know of that, "" if nothing."""

    name: str
    problem: str = ""


async def choose_model(
    name: str, models: NamedModels, parent_model: Callable[[], Awaitable[str]], whose: str = "its parent's"
) -> AgentModel:
    """The model for an agent whose card, or whose call, wants this one; `parent_model` gives the name of the one that it has otherwise,
    which `whose` says in words."""
    name = name.strip()
    if name in models.aliases:
        name = models.aliases[name].strip()
    family = name.partition("[")[0].casefold()
    if not name or family == INHERIT:
        return AgentModel("")
    if family not in FAMILIES or name in models.known():
        return AgentModel(name)
    parent = await parent_model()
    if family in parent.casefold():
        return AgentModel("")
    hint = f'say which it is: [agents.model_aliases] {family} = "…"'
    return AgentModel("", f"no setting says which model `{name}` is: it works with {whose}, {parent} ({hint})")
