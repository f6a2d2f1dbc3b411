"""What hooks gave: rules and folders, each with who gave it and how far it reaches (docs/decisions/answers.md)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from cru.core.events.answers import TIGHTENING, GrantKind, GrantScope, PermissionUpdate, UpdateKind

REACH = {
    GrantScope.SESSION: "in this session",
    GrantScope.LOCAL: "in this project",
    GrantScope.PROJECT: "in this project",
    GrantScope.USER: "everywhere",
}
GIVING = {
    GrantKind.ALLOW: "allows `{}`",
    GrantKind.ASK: "asks before `{}`",
    GrantKind.DENY: "forbids `{}`",
    GrantKind.FOLDER: "adds the folder `{}`",
}
TAKING = {
    GrantKind.ALLOW: "no longer allows `{}`",
    GrantKind.ASK: "no longer asks before `{}`",
    GrantKind.DENY: "no longer forbids `{}`",
    GrantKind.FOLDER: "takes away the folder `{}`",
}


class HookGrant(Struct, frozen=True, omit_defaults=True):
    """One rule or folder.

    text: the rule in cru's writing, or an absolute folder
    root: the project in which it holds; "" everywhere
    by: the owner of the hook
    """

    grant: GrantKind
    text: str
    scope: GrantScope
    root: str = ""
    by: str = ""


def apply_update(grants: Sequence[HookGrant], update: PermissionUpdate, root: str) -> tuple[HookGrant, ...]:
    """The grants after an update of rules or folders. It reaches those of its own kind and scope only, and what asks or forbids only
    if the same hook gave it. `root`: the project."""
    where = root if update.scope in (GrantScope.LOCAL, GrantScope.PROJECT) else ""
    new = [HookGrant(update.grant, text, update.scope, where, update.by) for text in dict.fromkeys(update.items)]

    def goes(old: HookGrant) -> bool:
        if (old.grant, old.scope, old.root) != (update.grant, update.scope, where):
            return False
        if update.grant in TIGHTENING and old.by != update.by:
            return False
        return (old.text in update.items) is (update.kind is UpdateKind.REMOVE)

    kept = tuple(grants) if update.kind is UpdateKind.ADD else tuple(old for old in grants if not goes(old))
    if update.kind is UpdateKind.REMOVE:
        return kept
    present = {(old.grant, old.text, old.scope, old.root, old.by if old.grant in TIGHTENING else "") for old in kept}
    own = update.by if update.grant in TIGHTENING else ""
    return kept + tuple(item for item in new if (item.grant, item.text, item.scope, item.root, own) not in present)


def describe_change(before: Sequence[HookGrant], after: Sequence[HookGrant], file: str) -> list[str]:
    """What a person should know of a change, a line each. `file` keeps what is for longer than the session."""
    lines = [(GIVING, grant) for grant in after if grant not in before]
    lines += [(TAKING, grant) for grant in before if grant not in after]
    return [
        f"{words[grant.grant].format(grant.text)} from now on {REACH[grant.scope]}"
        + (f" (kept in {file})" if grant.scope is not GrantScope.SESSION and words is GIVING else "")
        for words, grant in lines
    ]
