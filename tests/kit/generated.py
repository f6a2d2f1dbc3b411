"""Parts of pages that are made from the program's own tables, so that they cannot be wrong.

<!-- generated: NAME -->
(everything here is replaced by GENERATORS["NAME"]())
<!-- end generated -->
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tests.kit import hook_tables, program_tables, tables
from tests.kit.differential import page as differential

from cru.core.base.config.closest import closest

Generator = Callable[[], str]

# Name of a part → what writes it.
GENERATORS: dict[str, Generator] = {
    "api": tables.api,
    "attack_rows": tables.attack_rows,
    "chibi_flags": tables.chibi_flags,
    "command_facts": tables.command_facts,
    "commands": tables.commands,
    "event_aliases": tables.event_aliases,
    "event_fields": tables.event_fields,
    "events": tables.events,
    "events_brief": tables.events_brief,
    "flags": tables.flags,
    "hook_arguments": hook_tables.arguments,
    "hook_differences": differential.kept,
    "hook_moments": hook_tables.moments,
    "hook_names": hook_tables.synonyms,
    "hook_places": hook_tables.places,
    "hook_shells": hook_tables.shells,
    "hook_tools": hook_tables.tools,
    "hooks_that_never_fire": hook_tables.without_moment,
    "known_programs": tables.known_programs,
    "modes": tables.modes,
    "namespace": tables.namespace,
    "oq": tables.oq,
    "program_hooks": program_tables.hooks,
    "program_kinds": tables.program_kinds,
    "program_settings": program_tables.settings,
    "settings": tables.settings,
    "states": tables.states,
}

REGION = re.compile(
    r"^<!-- generated: (?P<name>\S+) -->\n(?P<old>.*?)^<!-- end generated -->$", re.DOTALL | re.MULTILINE
)
BEGIN = re.compile(r"^<!-- generated:", re.MULTILINE)


class GeneratedError(Exception):
    """A part has no end, or nobody generates it."""


def renew(text: str, page: str, generators: Mapping[str, Generator]) -> str:
    """The page with its generated parts made anew."""

    def one(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in generators:
            near = closest(name, generators)
            hint = f"; did you mean {near!r}?" if near else f"; known: {', '.join(sorted(generators)) or 'none'}"
            raise GeneratedError(f"{page}: nobody generates {name!r}{hint}")
        if BEGIN.search(match["old"]):
            raise GeneratedError(f"{page}: the generated part {name!r} has no end")
        return f"<!-- generated: {name} -->\n{generators[name]().rstrip()}\n<!-- end generated -->"

    if len(BEGIN.findall(text)) > len(REGION.findall(text)):
        raise GeneratedError(f"{page}: a generated part has no end (`<!-- end generated -->` on a line of its own)")
    return REGION.sub(one, text)
