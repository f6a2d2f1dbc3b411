"""The hooks of a plugin on the bus: one handler for each tool entry that registered one."""

from __future__ import annotations

from cru.core.api.host import Host
from cru.core.events.answers import PASS, Answer
from cru.core.events.journal import LOOKS_ON, SkipKind, SkipReason
from cru.core.events.stamp import Event
from cru.core.plugins.executables.calls import ProgramContext, call_hook
from cru.core.plugins.executables.executable import Executable
from cru.core.plugins.executables.hooks.effects import read_answer
from cru.core.plugins.executables.hooks.hook import LASTING, HookAnswerContext, LegFacts, ProgramHook, ignore_answer
from cru.core.plugins.executables.hooks.table import BY_NAME, CALL, LAST, SPAWN

PRIORITY = 100
SHARED = "executable hooks"
SECONDS = 86_400.0
"""The bus does not wait longer; the limit of a hook is the plugin's own."""


class ProgramHookHandler:
    """Runs the program with the hook's payload. That it fails is told like the failure of any handler, and ends no turn."""

    copies = True

    def __init__(
        self, hook: ProgramHook, executable: Executable, tool: str, facts: LegFacts, where: ProgramContext
    ) -> None:
        self._hook = hook
        self._executable = executable
        self._tool = tool
        self._facts = facts
        self._where = where
        self._lasting = PASS

    def declines(self, event: Event) -> SkipReason | None:
        """Why the hook does not mean this event; one that cannot be judged is not passed by."""
        if self._hook.hears is None:
            return None
        try:
            means = self._hook.hears(event, self._facts)
        except Exception as error:  # noqa: BLE001  the boundary around tools and their arguments: reported, and the hook is asked
            self._warn(f"cannot tell whether it applies: {type(error).__name__}: {error}")
            return None
        return None if means else SkipReason(SkipKind.OTHER_EVENT, self._hook.name)

    async def __call__(self, event: Event) -> Answer:
        """Raises HookFailed."""
        hook, facts = self._hook, self._facts
        if hook.repeats is None:
            return await self._ask(event)
        if not hook.repeats(event, facts):
            self._lasting = PASS
            answer = await self._ask(event)
            self._lasting = Answer(changes=tuple(change for change in answer.changes if change.field in LASTING))
            return answer
        return self._lasting

    async def _ask(self, event: Event) -> Answer:
        """What the program says."""
        hook, facts = self._hook, self._facts
        printed = await call_hook(self._executable, hook.name, hook.payload(event, facts), self._where)
        fields = read_answer(printed) if hook.effect is not ignore_answer else None
        if fields is None:
            return PASS
        dispatch = facts.dispatch_of(event, hook.name)
        if dispatch.ended_by:
            return Answer(note=f"not looked at: {dispatch.ended_by} had the last word")
        context = HookAnswerContext(event, facts, self._executable.name, self._tool, dispatch)
        answer = hook.effect(context, fields)
        for problem in context.problems:
            self._warn(problem)
        return answer

    def _warn(self, text: str) -> None:
        self._facts.parts.bus.stream.warn(f"{self._executable.name}: {self._hook.name}: {text}", self._executable.name)


def register(host: Host, executable: Executable, where: ProgramContext) -> None:
    """Put a plugin's hooks on the bus, in its name: one handler for each tool entry that registered the hook. What will never be called is
    kept for the list of plugins. Names that are no hooks are left to whoever reads the schema."""
    pairs = [
        (tool.name, BY_NAME[name]) for tool in executable.tools for name in dict.fromkeys(tool.hooks) if name in BY_NAME
    ]
    if not pairs:
        return
    facts = host.session.family_state(SHARED, lambda: LegFacts(host.session.parts, where.home, where.verbose))
    for tool, hook in pairs:
        handler = ProgramHookHandler(hook, executable, tool, facts, where)
        on_error = executable.on_error if hook.events in (CALL, SPAWN) else "pass"
        for event in hook.events:
            host.listen(
                event, handler, lane="executables", priority=PRIORITY + hook.step, limit=SECONDS,
                where=f"{executable.path} {hook.name}", on_error=on_error, hook=hook.name,
            )  # fmt: skip
    hooks = {hook.name: hook for _, hook in pairs}
    for observed in dict.fromkeys(observed for hook in hooks.values() for observed in hook.observes):
        host.listen(observed.value, facts.observe, priority=LAST, where=f"{executable.path} {LOOKS_ON}")
    reasons = dict.fromkeys(hook.later for hook in hooks.values() if hook.later)
    for reason in reasons:
        names = [hook.name for hook in hooks.values() if hook.later == reason]
        host.plugin.problems.append(f"{' and '.join(names)}: never called: {reason}")
