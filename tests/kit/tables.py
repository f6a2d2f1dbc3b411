"""What writes the generated parts of docs/: each function turns one of the program's own tables into Markdown."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from inspect import iscoroutinefunction

from tests.core.api.examples import docs, example
from tests.kit.program_facts import read_meanings
from tests.kit.settings_table import markdown

from cru.core.api.event_table.table import ALIASES
from cru.core.api.names import ABSENT, INDEXED, NAMES
from cru.core.command_table import COMMANDS, GROUPS, load_target
from cru.core.compose.start import every_struct
from cru.core.events.catalog import ALIASES as OWN_ALIASES
from cru.core.events.catalog import CATALOG
from cru.core.guard.rules.modes import KINDS, MODE_DESCRIPTIONS, MODES
from cru.core.guard.shell.options import HARMLESS
from cru.core.guard.shell.programs import COMMANDS as COMMAND_FACTS
from cru.core.guard.shell.programs import KINDS as PROGRAM_KINDS
from cru.core.guard.shell.programs import VARIABLES
from cru.core.turn.turn import TRANSITIONS
from cru.faces.cli.flag_names import CHIBI_SYNONYMS, SYNONYMS
from cru.faces.cli.flags import FLAGS, OWN_LETTERS
from cru.faces.cli.oq.options import HELP


def mermaid() -> str:
    """The table as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> idle"]
    lines += [f"    {old} --> {new}: {why}" for (old, new), why in TRANSITIONS.items()]
    return "\n".join(lines)


def flags() -> str:
    """docs/command-line.md: every flag in the order of execution."""
    rows = ["| flag | values | quiet | what it does |", "|---|---|---|---|"]
    for flag in FLAGS:
        others = (other for other, name in SYNONYMS.items() if name == flag.long and other not in CHIBI_SYNONYMS)
        names = " ".join(
            f"`{name}`" for name in (flag.short, flag.long, *others) if name and (name[1] == "-" or name in OWN_LETTERS)
        )
        values = " ".join(flag.args).replace("|", "\\|")
        rows.append(f"| {names} | {values} | {'quiet' if flag.quiet and flag.kind == 'op' else ''} | {flag.help} |")
    return "\n".join(rows)


def chibi_flags() -> str:
    """docs/coming-from-chibi.md: the letters, and chibi's other names of flags."""
    rows = ["| letter | flag | chibi's other names |", "|---|---|---|"]
    for flag in FLAGS:
        others = " ".join(f"`{other}`" for other, name in CHIBI_SYNONYMS.items() if name == flag.long)
        if flag.short or others:
            words = " ".join((flag.long, *flag.args)).replace("|", "\\|")
            rows.append(f"| {f'`{flag.short}`' if flag.short else ''} | `{words}` | {others} |")
    return "\n".join(rows)


def oq() -> str:
    """docs/oq.md: the switches of `cru oq`."""
    return f"```text\n{HELP}```"


def commands() -> str:
    """docs/commands.md: the commands, group by group."""
    rows = ["| about | command | what it does | works in |", "|---|---|---|---|"]
    for group in GROUPS:
        for name, row in COMMANDS.items():
            if row.group == group:
                words = f"{name} {row.hint}".rstrip().replace("|", "\\|")
                about = row.about if name == row.name else f"the same as `{row.name}`"
                places = "shell, chat" if not row.only or row.option else row.only
                rows.append(f"| {group} | `{words}` | {about} | {places} |")
    return "\n".join(rows)


def events() -> str:
    """docs/events.md: the catalog."""
    rows = ["| event | kind | fires when | may be changed | pattern | cancel means | context | inject | result |"]
    rows.append("|---" * 9 + "|")
    for row in CATALOG:
        when = row.when if row.live else f"{row.when} (not available yet)"
        writable = ", ".join(f"`{field}`" for field in row.writable)
        ident = f"`{row.ident}`" if row.ident else ""
        inject = "yes" if row.inject else ""
        scope = " ᵗ" if row.scope == "tree" else ""
        cells = (f"`{row.name}`{scope}", row.kind, when, writable, ident, row.cancel, row.context, inject, row.result)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def event_aliases() -> str:
    """docs/events.md: other names of events, and of their fields."""
    rows = ["| name | is | its fields beside, or in the place of, those of the event |", "|---|---|---|"]
    for name, (event, ident) in OWN_ALIASES.items():
        rows.append(f"| `{name}` | `{event}`{f' with the pattern `{ident}`' if ident else ''} | |")
    for name, alias in ALIASES.items():
        fields = ", ".join(f"`{key}`" if key == field else f"`{key}` = `{field}`" for key, field in alias.keys.items())
        only = "only " if alias.only else ""
        events = f"never: {alias.never}" if alias.never else " and ".join(f"`{event}`" for event in alias.events)
        rows.append(f"| `{name}` | {events} | {only}{fields} |")
    return "\n".join(rows)


def event_fields() -> str:
    """docs/events.md: the fields of every live event's payload with their types."""
    rows = ["| event | fields |", "|---|---|"]
    for row in CATALOG:
        if row.live and row.name != "custom":
            fields = (f"`{name}`{_field_type(said)}" for name, said in row.payload.__annotations__.items())
            rows.append(f"| `{row.name}` | {', '.join(fields)} |")
    return "\n".join(rows)


def _field_type(said: str) -> str:
    """An annotation in words of both languages; texts are not marked."""
    return {"str": "", "int": " number", "float": " number", "bool": " boolean", "tuple": " list", "Any": " any"}.get(
        said.partition("[")[0].partition(" ")[0], " table"
    )


def events_brief() -> str:
    """The bundled guide: live events, their fields, what may be changed, what a pattern looks at."""
    rows = ["| event | fires | fields | may be changed | pattern |", "|---" * 5 + "|"]
    for row in CATALOG:
        if row.live and row.name != "custom":
            fields = ", ".join(row.payload.__struct_fields__)
            rows.append(f"| `{row.name}` | {row.when} | {fields} | {', '.join(row.writable)} | {row.ident} |")
    return "\n".join(rows)


def api() -> str:
    """AGENTS.md and the bundled guide: every name with its signature, a line a family. Of several names for one function the one
    with a family is listed."""
    families: dict[str, list[str]] = {}
    seen: set[str] = set()
    for name in sorted(NAMES, key=lambda n: ("." not in n, n)):
        if NAMES[name] not in seen:
            seen.add(NAMES[name])
            families.setdefault(name.rpartition(".")[0] or "cru", []).append(
                f"`{_signature(docs(NAMES[name])[0]).rstrip('.,')}`"
            )
    return "\n".join(f"- {' · '.join(said)}" for _, said in sorted(families.items()))


def _signature(said: str) -> str:
    """The beginning of a docstring up to the end of `name(arguments) -> result`."""
    call = _until(said, " :;")
    rest = said[len(call) :]
    return call + _until(rest, ".;:,", start=4) if rest.startswith(" -> ") else call


def _until(text: str, ends: str, start: int = 0) -> str:
    """The text before the first of these characters that stands outside of brackets and is no part of a word."""
    depth = 0
    for at, char in enumerate(text):
        depth += (char in "({[") - (char in ")}]")
        if at >= start and depth == 0 and char in ends and text[at + 1 : at + 2] in ("", " ", char):
            return text[:at]
        if at >= start and depth == 0 and char == " " and " " in ends:
            return text[:at]
    return text


def settings() -> str:
    """docs/configuration.md: every setting of every room."""
    docs: dict[str, str] = {}
    for struct in every_struct():
        docs |= getattr(sys.modules[struct.__module__], "DOCS", {})
    return markdown(every_struct(), docs)


def states() -> str:
    """docs/turn.md: the state machine as a drawing."""
    return f"```mermaid\n{mermaid()}\n```"


def modes() -> str:
    """docs/permissions.md: what each mode says to each kind of tool."""
    rows = ["| mode | " + " | ".join(KINDS) + " | in words |", "|---|" + "---|" * (len(KINDS) + 1)]
    for name, table in MODES.items():
        cells = " | ".join(table.get(kind, "") for kind in KINDS)
        rows.append(f"| `{name}` | {cells} | {MODE_DESCRIPTIONS[name]} |")
    return "\n".join(rows)


def known_programs() -> str:
    """docs/permissions.md: of which programs options are known."""
    listed = sorted({key.split()[0] for key in HARMLESS})
    by_nature = sorted(key for key, options in HARMLESS.items() if options == "*")
    others = sorted({key.split()[0] for key, facts in COMMAND_FACTS.items() if facts.does_more} - set(listed))
    return (
        f"Harmless options are known of {len(listed)} programs: {_code(listed)}. Whatever options they have but for those that start "
        f"something else are covered of {_code(by_nature)}. Of {len(others)} more only options that do more are known, and the rest is "
        f"covered: {_code(others)}."
    )


def command_facts() -> str:
    """docs/command-facts.md: what a rule must write out, by program and subcommand of git."""
    rows = [
        "| command | may run another program | writes to a place of its own | gives something away |",
        "|---|---|---|---|",
    ]
    for key, facts in sorted(COMMAND_FACTS.items()):
        running = [f"{key} {word.replace('/', ' ')}" for word in sorted(facts.running.split())]
        runs, writes, sends = ([*texts.split()] for texts in (facts.runs, facts.writes, facts.sends))
        if facts.does_more and (runs or running or writes or sends):
            cells = (_code(names).replace("|", "\\|") for names in ([key], [*runs, *running], writes, sends))
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def program_kinds() -> str:
    """docs/command-facts.md: the lists of programs, subcommands and variables."""
    rows = ["| list | meaning | size |", "|---|---|---|"]
    meanings = read_meanings()
    for part in (PROGRAM_KINDS, VARIABLES):
        for name in part.__struct_fields__:
            rows.append(f"| `{name}` | {meanings.get(name, 'as above')} | {len(getattr(part, name))} |")
    return "\n".join(rows)


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def namespace() -> str:
    """docs/namespace.md: every name, what it does, and its example."""
    lines: list[str] = []
    family = ""
    for name in sorted(NAMES, key=lambda n: ("." in n or any(o.startswith(f"{n}.") for o in NAMES), n)):
        own = name.partition(".")[0] if "." in name or any(o.startswith(f"{name}.") for o in NAMES) else "cru"
        if own != family:
            family = own
            lines += ["", f"## {family}", ""]
        said, text = docs(NAMES[name])[0], example(name)
        waits = "*waits:* " if iscoroutinefunction(load_target(NAMES[name])) else ""
        lines.append(f"- **`{name}`** {waits}{said}  \n  `{text.expression} --> {text.value}`")
    lines += ["", "## Tables with keys", ""]
    for path, pair in INDEXED.items():
        lines += [f"- **`{path}`** {docs(target)[0]}  \n  `{docs(target)[1]}`" for target in pair if target]
    lines += ["", "## Not available yet", "", ABSENT_NOTE, "", "| names | answer | why |", "|---|---|---|"]
    kinds: dict[tuple[str, str], list[str]] = {}
    for name, (answer, reason) in ABSENT.items():
        kinds.setdefault((answer.value, reason), []).append(f"`{name}`")
    lines += [f"| {', '.join(names)} | {answer} | {reason} |" for (answer, reason), names in kinds.items()]
    return "\n".join(lines).strip()


ABSENT_NOTE = (
    "These answer as they do in crucible where the thing is missing, so that a plugin that looks for it lives; each plugin is told "
    "once. In Python they are awaited."
)


def attack_rows() -> str:
    from tests.attacks.counts import table

    return table()
