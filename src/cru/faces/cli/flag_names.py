"""Names of flags that chibi has and cru spells differently, or does not have. Loaded only for a word that is no flag of cru."""

SYNONYMS = {
    "--no-chibi": "--no-llm", "--force-chibi": "--force-llm", "--json-output": "--json",
    # chibi 0.10
    "--ephemeral-context": "--transient-context", "--ephemeral-username": "--transient-username",
    "--destroy-current-context": "--delete-current-context", "--destroy-context": "--delete-context",
    "--archive-current-history": "--archive-current-context", "--archive-history": "--archive-context",
    "--check-all-inboxes": "--check-inboxes", "--check-inbox-for": "--check-inbox",
    "--force-call-user": "--no-llm", "--force-call-agent": "--force-llm",
}  # fmt: skip

ABSENT = dict.fromkeys(
    ("--flock-create", "--flock-delete", "--flock-join", "--flock-leave", "--flock-list"),
    (
        "cru has no groups of contexts (flocks)",
        'one message to one context: cru -P send_message \'{"to": "NAME", "content": "TEXT"}\'; cru -L lists them',
    ),
)
"""Flags for which cru has nothing: why, and the nearest thing that it has."""
