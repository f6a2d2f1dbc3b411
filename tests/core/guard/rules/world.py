"""A small world to judge calls in."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from cru.core.guard.rules import LayerRules, PermissionSettings, RuleLists
from cru.core.guard.rules.gate import Gate, Verdict
from cru.core.guard.rules.grants import Grants

Access = Literal["read", "write"]


class World:
    """A home, a project with a symlink that leads out and one that stays, and a folder outside."""

    def __init__(self, base: Path) -> None:
        self.user = base / "home"
        self.home = self.user / ".cru"
        self.root = self.user / "project"
        self.outside = base / "outside"
        for folder in (self.home / "contexts" / "c", self.root / "src", self.root / ".git", self.outside):
            folder.mkdir(parents=True)
        (self.outside / "secret").write_text("x")
        (self.root / "src" / "a.py").write_text("x")
        (self.root / "leak").symlink_to(self.outside)
        (self.root / "inner").symlink_to(self.root / "src")
        (self.root / "hook").symlink_to(self.root / ".git")

    def gate(
        self,
        mode: str = "ask",
        *,
        allow: tuple[str, ...] = (),
        ask: tuple[str, ...] = (),
        deny: tuple[str, ...] = (),
        more: tuple[LayerRules, ...] = (),
        root: Path | None = None,
    ) -> Gate:
        """root: another project than this world's."""
        rules = LayerRules("user", RuleLists(allow, ask, deny), "config.toml")
        grants = Grants(self.home / "grants.json", root or self.root)
        readable = [self.home / "contexts" / "c"]
        places = (root or self.root, self.home, grants)
        return Gate(PermissionSettings(mode), [rules, *more], *places, readable=readable, user_home=self.user)


def touch(gate: Gate, access: Access, path: str) -> Verdict:
    return gate.judge("read" if access == "read" else "edit", access, path, [(access, path)])
