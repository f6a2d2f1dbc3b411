"""Names of flags that chibi and other agents have and cru spells differently, or does not have, and uses of them that mean something else
here. Loaded only for a word that is no flag of cru, and for the few flags with such a use."""

from collections.abc import Mapping, Sequence
from typing import Any

from cru.core.base.config.closest import closest
from cru.core.command_table import COMMANDS

CHIBI_SYNONYMS = {
    "--no-chibi": "--no-llm", "--force-chibi": "--force-llm", "--json-output": "--json",
    # 0.10
    "--ephemeral-context": "--transient-context", "--ephemeral-username": "--transient-username",
    "--destroy-current-context": "--delete-current-context", "--destroy-context": "--delete-context",
    "--archive-current-history": "--archive-current-context", "--archive-history": "--archive-context",
    "--check-all-inboxes": "--check-inboxes", "--check-inbox-for": "--check-inbox",
    "--force-call-user": "--no-llm", "--force-call-agent": "--force-llm",
}  # fmt: skip

SYNONYMS = CHIBI_SYNONYMS | {
    # Claude Code, Codex, Gemini CLI
    "--image": "--attach", "--file": "--attach", "--dangerously-skip-permissions": "--trust", "--yolo": "--trust",
    "--dangerously-bypass-approvals-and-sandbox": "--trust", "--config": "--set",
}  # fmt: skip

ABSENT = {
    "--permission-mode": ("cru says --mode", "ask (default), auto (acceptEdits), plan, trust (bypassPermissions)"),
    "--approval-mode": ("cru says --mode", "ask (default), auto (auto_edit), plan, trust (yolo)"),
    "--ask-for-approval": ("cru says --mode", "ask (untrusted), auto (on-request), trust (never)"),
    "--full-auto": ("cru says --mode auto", "commands run in the sandbox where one works"),
    "--output-format": ("cru says --json", "one JSON object a line for every event"),
    "--allowedTools": (
        "cru has rules",
        'in config.toml: [permissions] allow = ["bash:git status*"]; `cru permissions` lists them',
    ),
    "--disallowedTools": (
        "cru has rules",
        'in config.toml: [permissions] deny = ["bash:git push*"]; `cru permissions` lists them',
    ),
    "--system-prompt": ("cru says -y", "`cru -y TEXT` sets the context's own system prompt"),
    "--append-system-prompt": ("cru has guides", "what stands in AGENTS.md is added to every system prompt"),
    "--session-id": ("cru says -C", "`cru -C NAME …` uses a conversation by its name"),
    "--max-turns": ("cru says fuel", "-s fuel=N"),
    "--cd": ("cru works where it is started", "`cd` there, or --project-root PATH"),
    "--mcp-config": ("cru has a command", "`cru mcp add` adds a server"),
} | dict.fromkeys(
    ("--flock-create", "--flock-delete", "--flock-join", "--flock-leave", "--flock-list"),
    (
        "cru has no groups of contexts (flocks)",
        'one message to one context: cru -P send_message \'{"to": "NAME", "content": "TEXT"}\'; cru -L lists them',
    ),
)
"""Flags for which cru has nothing: why, and the nearest thing that it has."""


_APPROVALS = ABSENT["--ask-for-approval"][1]
FOREIGN_VALUES: dict[str, tuple[Any, ...]] = {
    "-a": (
        ("never", "on-request", "on-failure", "untrusted"), "-a {} is a flag of Codex; here it would empty the conversation",
        f"--mode: {_APPROVALS}\nto empty the conversation: cru --archive-current-context -- {{}}",
    ),
    "--sandbox": (
        ("read-only", "workspace-write", "danger-full-access", "on", "off", "true", "false", "none"), "--sandbox takes no value, as {} is",
        "--mode plan (read-only), --sandbox (workspace-write), --no-sandbox (danger-full-access)\nas a prompt: cru --sandbox -- {}",
    ),
}  # fmt: skip
"""What Codex has behind a flag that takes no value here: what is wrong, and what to type."""


def foreign_use(words: Sequence[str], flags: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what is wrong and a hint if another agent means something else by the first flag and the word behind it, else ()."""
    name, value = words[0], "".join(words[1:2])
    if name == "-y" and value in flags:
        return (
            f"-y would make {value} the system prompt",
            "--trust is what others call --yolo; the text comes first: cru -y TEXT …",
        )
    values, *texts = FOREIGN_VALUES.get(name, ((),))
    return tuple(text.format(value) for text in texts) if value in values else ()


def known_name(name: str, flags: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return cru's name of a flag, or what is wrong with it and a hint. flags: every flag by each of its names."""
    if name in ABSENT:
        return "", f"{name}: {ABSENT[name][0]}", ABSENT[name][1]
    if (own := SYNONYMS.get(name, name)) in flags:
        return own, "", ""
    hint = _command_hint(name.removeprefix("--")) if name.startswith("--") else ""
    near = "" if hint else _nearest(name, flags)
    return "", f"unknown flag {name}", hint or (f"did you mean {near}?" if near else "`cru help flags` lists all")


def _command_hint(word: str) -> str:
    """Return how to run the command of that name, or the one that another agent calls so."""
    row = COMMANDS.get(word) or next((row for row in COMMANDS.values() if word in row.foreign), None)
    if row is None:
        return ""
    if row.only == "chat" and not row.option:
        return f"it is a command: /{row.name} in the chat; {row.instead}"
    return f"it is a command: `cru {row.name}`"


def _nearest(name: str, flags: Mapping[str, Any]) -> str | None:
    """Return the flag that was probably meant: for an unknown letter a long flag that begins with it, preferably one without a letter."""
    if len(name) == 2:
        likely = [flag for flag in flags.values() if flag.name[0] == name[1].lower()]
        return min(likely, key=lambda flag: bool(flag.short)).long if likely else None
    return closest(name, [known for known in flags if known.startswith("--") or not name.startswith("--")])
