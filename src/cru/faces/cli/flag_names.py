"""Names of flags that chibi has and cru spells differently, or does not have. Loaded only for a word that is no flag of cru."""

from collections.abc import Mapping
from typing import Any

from cru.core.base.config.closest import closest

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


def known_name(name: str, flags: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return cru's name of a flag, or what is wrong with it and a hint. flags: every flag by each of its names."""
    if name in ABSENT:
        return "", f"{name}: {ABSENT[name][0]}", ABSENT[name][1]
    if (own := SYNONYMS.get(name, name)) in flags:
        return own, "", ""
    near = _nearest(name, flags)
    return "", f"unknown flag {name}", f"did you mean {near}?" if near else "`cru help flags` lists all"


def _nearest(name: str, flags: Mapping[str, Any]) -> str | None:
    """Return the flag that was probably meant: for an unknown letter a long flag that begins with it, preferably one without a letter."""
    if len(name) == 2:
        likely = [flag for flag in flags.values() if flag.name[0] == name[1].lower()]
        return min(likely, key=lambda flag: bool(flag.short)).long if likely else None
    return closest(name, [known for known in flags if known.startswith("--") or not name.startswith("--")])
