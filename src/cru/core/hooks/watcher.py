"""Looks for command hooks when a session starts, and for changed files before each prompt; loads their rooms only if there are any."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from cru.core.events.stream import Notice
from cru.core.hooks.discovery import FilesStamp, find_dialects, stamp_files

if TYPE_CHECKING:
    from cru.core.base.values.errors import CruError
    from cru.core.hooks import HookSetup
    from cru.core.hooks.session import SessionHooks
    from cru.core.turn.parts import Parts


LABEL = 60
"""Characters of what a hook is called, in a list for people."""


class HookWatcher(Struct):
    """The way to the hooks of one session.

    hooks: None as long as there are none
    """

    setup: HookSetup
    hooks: SessionHooks | None = None
    _stamp: FilesStamp = ()
    _refusal: CruError | None = None

    def load(self) -> None:
        """Put the hooks that there are on the bus. Raises Untrusted (only with `strict`)."""
        self._stamp = stamp_files(self.setup.where)
        names = find_dialects(self.setup.where, self._stamp)
        if self.hooks is not None:
            names = list({*names, *self.hooks.active_dialects()})
        if not names and self.hooks is None:
            return
        from cru.core.hooks.registration import register_hooks

        self._refusal = None
        self.hooks = register_hooks(self.setup, names, self.hooks)

    async def check(self, parts: Parts) -> None:
        """When the session opens and all tools are there. Raises Untrusted (only with `strict`)."""
        if self._refusal is not None:  # a person may have mended it
            self.load()
        self._check()
        if parts.services.face.is_verbose and self.hooks is not None and self.hooks.loaded.known:
            entries = (
                f"{' '.join(entry.label.split())[:LABEL]} {entry.id} ({status.state})"
                for status in self.hooks.loaded.known
                if (entry := status.entry)
            )
            parts.bus.stream.tell(Notice("info", f"hooks: {', '.join(entries)}"))

    def _check(self) -> None:
        if self.hooks is None or not self.hooks.loaded.known:
            return
        from cru.core.hooks.errors import Untrusted
        from cru.core.hooks.registration import check_guards

        try:
            check_guards(self.setup, self.hooks)
        except Untrusted as error:
            self._refusal = error
            raise

    async def reload(self) -> None:
        """Before a prompt, if files have changed, came or went. Raises Untrusted (only with `strict`): as long as it would be raised,
        nothing is asked."""
        if self._refusal is None and stamp_files(self.setup.where) == self._stamp:
            return
        from cru.core.hooks.errors import Untrusted

        try:
            self.load()
            self._check()
        except Untrusted as error:
            self._refusal = error
            raise
