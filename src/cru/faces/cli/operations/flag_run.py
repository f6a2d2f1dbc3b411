"""The flags that do something: one function each, in a table; carried out in the order of the flag table (docs/command-line.md).
A module is loaded when one of its flags is used."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from cru.faces.cli.console import say, show
from cru.faces.cli.flags import Flag, Parsed
from cru.faces.cli.run_options import start_of

if TYPE_CHECKING:
    from cru.core.conversations.home import Home
    from cru.core.conversations.store import FileContext
    from cru.core.turn.session import Session
    from cru.faces.cli.json_mode.face import JsonFace


# Long name of a flag -> module.function of this package; it gets the FlagRun and the flag's values.
TABLE = {
    "--transient-context": "contexts.use_once",
    "--switch-context": "contexts.switch",
    "--archive-current-context": "contexts.archive",
    "--archive-context": "contexts.archive_other",
    "--compact-current-context": "contexts.compact",
    "--compact-context": "contexts.compact_other",
    "--rename-current-context": "contexts.rename",
    "--rename-context": "contexts.rename_other",
    "--set-current-system-prompt": "texts.set_prompt",
    "--set-system-prompt": "texts.set_prompt_other",
    "--set-username": "texts.set_username",
    "--transient-username": "texts.use_username",
    "--set-model": "models.set_current",
    "--set-model-for-context": "models.set_other",
    "--destroy-at": "expiry.destroy_at",
    "--destroy-after-inactive": "expiry.destroy_after_inactive",
    "--clear-cache": "cache.clear_current",
    "--clear-cache-for": "cache.clear_other",
    "--cleanup-cache": "cache.clean_all",
    "--list-current-context": "show.list_current",
    "--list-contexts": "show.list_all",
    "--model-metadata": "models.show_metadata",
    "--model-metadata-full": "models.show_full_metadata",
    "--delete-current-context": "contexts.delete",
    "--delete-context": "contexts.delete_other",
    "--show-current-log": "show.show_log",
    "--show-log": "show.show_log_other",
    "--inspect-current": "show.inspect_current",
    "--inspect": "show.inspect_other",
    "--plugin": "tools.run_plugin",
    "--call-tool": "tools.call_tool",
    "--check-inboxes": "inbox.check_all",
    "--check-inbox": "inbox.check_one",
}


class FlagRun:
    """Carries out the flags of one run, and keeps what they leave for the rest of it.

    parsed: the command line
    home: the home folder
    name: the context of the run; a flag may change it
    events: what handlers still have to hear of
    code: the exit status of turns that flags ran
    results: what calls of tools by hand gave, for the model
    """

    def __init__(self, parsed: Parsed, home: Home, name: str) -> None:
        self.parsed = parsed
        self.home = home
        self.name = name
        self.events: list[Struct] = []
        self.code = 0
        self.results: list[str] = []
        self._verbose = parsed.has("verbose")
        self._json: JsonFace | None = None

    def carry_out(self, operations: list[tuple[Flag, tuple[str, ...]]]) -> None:
        for flag, values in operations:
            module, _, name = TABLE[flag.long].partition(".")
            operation: Callable[..., None] = getattr(import_module(f"{__package__}.{module}"), name)
            operation(self, *values)

    def say(self, text: str) -> None:
        """Diagnostics of flags that concern the current context: stderr, with -v."""
        if self._verbose:
            say(f"[{text}]")

    def show(self, text: str) -> None:
        """What a flag was asked for: stdout, with --json as a line of its own."""
        if not self.parsed.has("json"):
            show(text)
            return
        if self._json is None:
            from cru.faces.cli.json_mode.face import JsonFace

            self._json = JsonFace()
        self._json.output(text)

    def store(self, name: str | None = None) -> FileContext:
        """The context of the run, or another one that exists. Raises NoSuchContext."""
        context = self.name if name is None else self.home.resolve_existing(name)
        if name is not None and not self.home.exists(context):
            from cru.core.base.config.closest import did_you_mean
            from cru.core.conversations import NoSuchContext

            raise NoSuchContext(
                f"there is no context '{context}'", did_you_mean(context, self.home.names()) or "cru -L lists them"
            )
        return self.home.open(context)

    def with_session(
        self, name: str, work: Callable[[Session], Coroutine[Any, Any, None]], *, tells_failures: bool = True
    ) -> None:
        """Build a session on a context, do the work, close it; `tells_failures`: of calls of tools."""
        from cru.faces.cli.session_run import with_session

        with_session(start_of(self.parsed, name), self.parsed, work, tells_failures=tells_failures)
