"""What writes the generated parts of docs/executables.md. What a hook is given comes from real payloads, those of the golden file."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cru.core.plugins.executables.executable import KEYS
from cru.core.plugins.executables.hooks.hook import ProgramHook
from cru.core.plugins.executables.hooks.table import TABLE

PAYLOADS = Path(__file__).parents[1] / "core" / "plugins" / "executables" / "payloads.json"


def hooks() -> str:
    """Every name, when it is called, what it is given, what an answer does."""
    given = msgspec.json.decode(PAYLOADS.read_bytes())
    rows = ["| hook | when | what it is given | what an answer does |", "|---|---|---|---|"]
    for hook in TABLE:
        if hook.later:
            rows.append(f"| `{hook.name}` | never: {hook.later} | | |")
        else:
            fields = ", ".join(f"`{name}`" for name in given[hook.name])
            rows.append(f"| `{hook.name}` | {hook.when} | {fields} | {_answer(hook)} |")
    return "\n".join(rows)


def settings() -> str:
    """The keys of `[plugins.NAME]` for programs."""
    return "\n".join(["| key | |", "|---|---|", *(f"| `{key}` | {about} |" for key, about in KEYS.items())])


def _answer(hook: ProgramHook) -> str:
    said = " ".join((hook.effect.__doc__ or "").split())
    return "" if said == "–" else said.replace("|", "\\|")
