"""What is permitted beside the settings: what a person has allowed by answering a question, and what hooks gave."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from cru.core.base.config.layers import SettingsProblem
from cru.core.events.answers import GrantKind, GrantScope, UpdateKind
from cru.core.guard import BadRule, NotStored

if TYPE_CHECKING:
    from pathlib import Path

    from cru.core.events.answers import PermissionUpdate
    from cru.core.guard.rules.rules import GrantOrigin, Rule
    from cru.core.guard.trust.hook_grants import HookGrant
    from cru.core.guard.trust.stored import GrantFile

Scope = Literal["session", "project", "always"]


class GrantedLists(Struct, frozen=True):
    """All grants that hold here, by what they decide.

    folders: absolute, those that count as part of the project
    """

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    folders: tuple[str, ...] = ()


NOTHING = GrantedLists()


class Grants:
    """The grants of one home folder, seen from one project. The file is read when the first call needs it; `problems` says what
    was wrong with it."""

    def __init__(self, path: Path, root: Path, keeps: bool = True) -> None:
        """keeps: False: what is added or taken back holds for the session alone"""
        self.problems: list[SettingsProblem] = []
        self._path, self._name = path, os.fspath(path)
        self._root = str(root)
        self._keeps = keeps
        self._session: list[Rule] = []
        self._session_hooks: tuple[HookGrant, ...] = ()
        self._file: GrantFile | None = None
        self._answered: tuple[Rule, ...] = ()
        self._lists: GrantedLists | None = None

    @property
    def file(self) -> str:
        """Where they are kept."""
        return str(self._path)

    def lists(self) -> GrantedLists:
        """The same object as long as nothing changes."""
        if self._file is None:
            try:
                os.stat(self._name)  # any other error is raised: the file may hold rules that deny
            except (FileNotFoundError, NotADirectoryError):
                pass  # the usual case; nothing is imported for it
            else:
                from cru.core.guard.trust.stored import GrantFile, load_stored

                self._keep(*load_stored(self._path, GrantFile))
        if self._lists is None:
            self._lists = self._collect() if self._file or self._session or self._session_hooks else NOTHING
        return self._lists

    def rules(self) -> tuple[Rule, ...]:
        """All that hold here and allow."""
        return self.lists().allow

    def add(self, scope: Scope, text: str) -> None:
        """Remember a person's answer. Raises BadRule, or NotStored if the file cannot be written (the rule then holds for the session)."""
        from cru.core.guard.rules.rules import GrantOrigin, parse_rule

        rule = parse_rule(text, f"an answer ({scope})", GrantOrigin(scope))
        self._session.append(rule)
        self._lists = None
        if scope == "session":
            return
        self._change(lambda old: self._add_answer(old, scope, text))
        self._session.remove(rule)
        self._lists = None

    def remove(self, text: str, scopes: Iterable[Scope] = ("session", "project", "always")) -> bool:
        """Forget an answer in these scopes, as far as they hold here; False if there was none. Raises NotStored."""
        self.lists()
        session = [rule for rule in self._session if rule.text != text] if "session" in scopes else self._session
        is_changed = len(session) != len(self._session)
        self._session, self._lists = session, None
        if self._file is not None and self._without_answer(self._file, text, scopes) != self._file:
            self._change(lambda old: self._without_answer(old, text, scopes))
            is_changed = True
        return is_changed

    def remove_of_hooks(self, text: str) -> list[str]:
        """Take back what hooks allow here by this rule; who they were. Raises NotStored."""
        self.lists()

        def goes(grant: HookGrant) -> bool:
            return grant.grant is GrantKind.ALLOW and grant.text == text and grant.root in ("", self._root)

        kept = self._file.hooks if self._file is not None else ()
        owners = [grant.by for grant in (*self._session_hooks, *kept) if goes(grant)]
        self._session_hooks = tuple(grant for grant in self._session_hooks if not goes(grant))
        self._lists = None
        if any(goes(grant) for grant in kept):
            self._change(lambda old: replace(old, hooks=tuple(grant for grant in old.hooks if not goes(grant))))
        return list(dict.fromkeys(owners))

    def update(self, update: PermissionUpdate) -> list[str]:
        """Take over rules or folders of a hook; what a person should know of it. Raises BadRule, or NotStored (it then holds for the
        session, if it gives something)."""
        from cru.core.guard.trust.hook_grants import apply_update, describe_change

        if update.grant is not GrantKind.FOLDER:
            from cru.core.guard.rules.rules import parse_rule

            for text in update.items:
                parse_rule(text)
        self.lists()
        notices: list[str] = []
        if update.kind is UpdateKind.REMOVE and update.grant is GrantKind.ALLOW:
            notices = self._take_back_answers(update)
        if update.scope is GrantScope.SESSION:
            before = self._session_hooks
            self._session_hooks = after = apply_update(before, update, self._root)
            self._lists = None
            return notices + describe_change(before, after, self.file)
        before = self._file.hooks if self._file is not None else ()
        after = apply_update(before, update, self._root)
        if after != before:
            self._change_kept(update)
        return notices + describe_change(before, after, self.file)

    def _change_kept(self, update: PermissionUpdate) -> None:
        from cru.core.guard.trust.hook_grants import apply_update

        try:
            self._change(lambda old: replace(old, hooks=apply_update(old.hooks, update, self._root)))
        except NotStored:
            if update.kind is not UpdateKind.REMOVE:
                here = replace(update, kind=UpdateKind.ADD, scope=GrantScope.SESSION)
                self._session_hooks, self._lists = apply_update(self._session_hooks, here, self._root), None
            raise

    def _take_back_answers(self, update: PermissionUpdate) -> list[str]:
        """A hook may name a person's answer of its scope, which then ends."""
        scopes: dict[GrantScope, Scope] = {
            GrantScope.SESSION: "session",
            GrantScope.LOCAL: "project",
            GrantScope.USER: "always",
        }
        scope = scopes.get(update.scope)
        taken = [text for text in update.items if scope is not None and self.remove(text, (scope,))]
        return [f"takes back your answer `{text}` ({scope})" for text in taken]

    def _change(self, change: Callable[[GrantFile], GrantFile]) -> None:
        if not self._keeps:
            raise NotStored("with --no-session no answer is kept", "leave the flag out to keep it for longer")
        from cru.core.guard.trust.stored import GrantFile, update_stored

        self._keep(*update_stored(self._path, GrantFile, change))

    def _keep(self, file: GrantFile, problem: SettingsProblem | None) -> None:
        if problem is not None:
            self.problems.append(problem)
        self._file, self._lists = file, None
        from cru.core.guard.rules.rules import GrantOrigin

        answers = (("always", file.always), ("project", file.projects.get(self._root, ())))
        self._answered = self._parse(
            (text, f"an answer ({scope}, {self._path})", GrantOrigin(scope, "", self.file))
            for scope, texts in answers
            for text in texts
        )

    def _parse(self, rules: Iterable[tuple[str, str, GrantOrigin]]) -> tuple[Rule, ...]:
        """Rules out of (text, source, origin); one that cannot be read is a problem."""
        from cru.core.guard.rules.rules import parse_rule

        parsed: list[Rule] = []
        for text, source, origin in rules:
            try:
                parsed.append(parse_rule(text, source, origin))
            except BadRule as error:
                self.problems.append(SettingsProblem(error.message, str(self._path), error.hint))
        return tuple(parsed)

    def _collect(self) -> GrantedLists:
        stored = self._file.hooks if self._file is not None else ()
        grants = (*self._session_hooks, *(grant for grant in stored if grant.root in ("", self._root)))
        of = {kind: [grant for grant in grants if grant.grant is kind] for kind in GrantKind}
        allow, ask, deny = (
            self._parse((grant.text, f"{grant.by} ({grant.scope.value})", self._origin_of(grant)) for grant in of[kind])
            for kind in (GrantKind.ALLOW, GrantKind.ASK, GrantKind.DENY)
        )
        folders = tuple(dict.fromkeys(grant.text for grant in of[GrantKind.FOLDER]))
        return GrantedLists((*self._session, *self._answered, *allow), ask, deny, folders)

    def _origin_of(self, grant: HookGrant) -> GrantOrigin:
        from cru.core.guard.rules.rules import GrantOrigin

        return GrantOrigin(grant.scope.value, grant.by, "" if grant.scope == "session" else self.file)

    def _add_answer(self, old: GrantFile, scope: Scope, text: str) -> GrantFile:
        if scope == "always":
            return replace(old, always=(*_without(old.always, text), text))
        own = (*_without(old.projects.get(self._root, ()), text), text)
        return replace(old, projects={**old.projects, self._root: own})

    def _without_answer(self, old: GrantFile, text: str, scopes: Iterable[Scope]) -> GrantFile:
        always = _without(old.always, text) if "always" in scopes else old.always
        if "project" not in scopes or self._root not in old.projects:
            return replace(old, always=always)
        own = _without(old.projects[self._root], text)
        projects = {root: rules for root, rules in {**old.projects, self._root: own}.items() if rules}
        return replace(old, always=always, projects=projects)


def _without(rules: tuple[str, ...], text: str) -> tuple[str, ...]:
    return tuple(rule for rule in rules if rule != text)
