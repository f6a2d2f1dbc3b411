"""What a person has allowed by answering a question: for this session, for a project, or always."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

if TYPE_CHECKING:
    from pathlib import Path

    from cru.config.layers import SettingsProblem
    from cru.permissions.rules import Rule
    from cru.permissions.stored import GrantFile

Scope = Literal["session", "project", "always"]


class Grants:
    """The grants of one home folder, seen from one project. The file is read when the first call needs it; `problems` says what
    was wrong with it."""

    def __init__(self, path: Path, root: Path) -> None:
        self.problems: list[SettingsProblem] = []
        self._path = path
        self._root = str(root)
        self._session: list[Rule] = []
        self._stored: tuple[Rule, ...] | None = None

    def rules(self) -> tuple[Rule, ...]:
        """All grants that hold here, as allow rules."""
        if self._stored is None:
            if not self._path.exists():  # the usual case; nothing is imported for it
                return tuple(self._session)
            from cru.permissions.stored import GrantFile, load_stored

            file, problem = load_stored(self._path, GrantFile)
            self._keep_rules(file, problem)
        return (*self._session, *(self._stored or ()))

    def add(self, scope: Scope, text: str) -> None:
        """Remember a rule. Raises BadRule, or NotStored if the file cannot be written (the rule then holds for the session)."""
        from cru.permissions.rules import parse_rule

        rule = parse_rule(text, f"an answer ({scope})")
        self._session.append(rule)
        if scope == "session":
            return
        self._change(lambda old: self._add_rule(old, scope, text))
        self._session.remove(rule)

    def remove(self, text: str) -> bool:
        """Forget a rule in every scope that holds here; False if there was none. Raises NotStored."""
        if all(rule.text != text for rule in self.rules()):
            return False
        self._session = [rule for rule in self._session if rule.text != text]
        if any(rule.text == text for rule in self._stored or ()):
            self._change(lambda old: self._remove_rule(old, text))
        return True

    def _change(self, change: Callable[[GrantFile], GrantFile]) -> None:
        from cru.permissions.stored import GrantFile, update_stored

        file, problem = update_stored(self._path, GrantFile, change)
        self._keep_rules(file, problem)

    def _keep_rules(self, file: GrantFile, problem: SettingsProblem | None) -> None:
        from cru.config.layers import SettingsProblem
        from cru.permissions import BadRule
        from cru.permissions.rules import parse_rule

        if problem is not None:
            self.problems.append(problem)
        stored: list[Rule] = []
        for scope, texts in (("always", file.always), ("project", file.projects.get(self._root, ()))):
            for text in texts:
                try:
                    stored.append(parse_rule(text, f"an answer ({scope}, {self._path})"))
                except BadRule as error:
                    self.problems.append(SettingsProblem(error.message, str(self._path), error.hint))
        self._stored = tuple(stored)

    def _add_rule(self, old: GrantFile, scope: Scope, text: str) -> GrantFile:
        if scope == "always":
            return replace(old, always=(*_without(old.always, text), text))
        own = (*_without(old.projects.get(self._root, ()), text), text)
        return replace(old, projects={**old.projects, self._root: own})

    def _remove_rule(self, old: GrantFile, text: str) -> GrantFile:
        own = _without(old.projects.get(self._root, ()), text)
        projects = {root: rules for root, rules in {**old.projects, self._root: own}.items() if rules}
        return replace(old, always=_without(old.always, text), projects=projects)


def _without(rules: tuple[str, ...], text: str) -> tuple[str, ...]:
    return tuple(rule for rule in rules if rule != text)
