"""Names of flags that chibi has and cru spells differently, or does not have. Loaded only for a word that is no flag of cru."""

SYNONYMS = {
    "--no-chibi": "--no-llm", "--force-chibi": "--force-llm", "--json-output": "--json",
    # chibi 0.10
    "--ephemeral-context": "--transient-context", "--ephemeral-username": "--transient-username",
    "--destroy-current-context": "--delete-current-context", "--destroy-context": "--delete-context",
    "--archive-current-history": "--archive-current-context", "--archive-history": "--archive-context",
    "--check-all-inboxes": "--check-inboxes", "--check-inbox-for": "--check-inbox",
    "--force-call-user": "--no-llm", "--force-call-agent": "--force-llm",
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
