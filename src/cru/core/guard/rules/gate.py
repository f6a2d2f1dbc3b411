"""The gate decides on each call: allow, ask or deny. It reads the rules, protected places, the project's border, the mode and
earlier answers of the user."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from cru.core.guard import BadRule
from cru.core.guard.rules import Asker as Asker
from cru.core.guard.rules import NoAsker as NoAsker
from cru.core.guard.rules import PermissionReply as PermissionReply
from cru.core.guard.rules import PermissionSubject as PermissionSubject
from cru.core.guard.rules import ReplyScope as ReplyScope
from cru.core.guard.rules import RuleEditing, parse_layers
from cru.core.guard.rules.grants import GrantedLists
from cru.core.guard.rules.modes import DOING, MODE_DESCRIPTIONS, Decision, check_mode, decide, stricter
from cru.core.guard.rules.paths import (
    JudgedCall,
    PathRoots,
    ResolvedPath,
    contains_secrets,
    is_outside,
    is_protected,
    locate,
    resolve,
)

if TYPE_CHECKING:
    from pathlib import Path

    from cru.core.guard.rules import LayerRules, PermissionSettings
    from cru.core.guard.rules.grants import Grants
    from cru.core.guard.rules.hidden_files import HiddenFiles
    from cru.core.guard.rules.outside_runs import OutsideRuns
    from cru.core.guard.rules.rules import Rule

Access = Literal["read", "write"]


class Verdict(Struct, frozen=True):
    """What the gate decides about a call.

    decision: allow, ask or deny
    reason: worded for the model, names who decided
    rule: the text of the rule that decided
    explicit: a rule that somebody wrote has decided, so an ask beats the Allow of a hook
    needs_rule: no mode allows it, only a rule or a person
    by_place: it asks since a path leads out of the project, or would change what is protected, which `auto` does not allow
    source: the rule that decided, with its origin; None: no rule did
    """

    decision: Decision
    reason: str
    rule: str = ""
    explicit: bool = False
    needs_rule: bool = False
    by_place: bool = False
    source: Rule | None = None


class _GateState(Struct):
    """What the gates of all agents of a session share."""

    places: PathRoots
    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    folders: tuple[str, ...] = ()
    granted: GrantedLists | None = None
    outside: OutsideRuns | None = None
    notes: list[str] = []
    noted: set[str] = set()


class Gate:
    """Judges calls. `root` is the project root, `home` cru's home folder; files below `readable` may be read although they lie
    outside the project (a context's spilled outputs). Raises UnknownMode and BadRule."""

    def __init__(
        self,
        settings: PermissionSettings,
        rules: Sequence[LayerRules],
        root: Path,
        home: Path,
        grants: Grants,
        *,
        readable: Sequence[Path] = (),
        user_home: Path | None = None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        user = resolve(user_home if user_home is not None else os.path.expanduser("~"))
        free = tuple(resolve(folder) for folder in readable)
        self._state = _GateState(PathRoots(resolve(root), resolve(home), user, free, secrets=secrets))
        self._settings_file = os.path.join(home, "config.toml")
        self._grants = grants
        self._rules = tuple(rules)
        self._outer: Gate | None = None
        self._narrow: Callable[[PathRoots], PathRoots] = lambda places: places
        self._own_mode = check_mode(settings.mode)
        self._own_holder = ""
        self.take_over(())

    def narrowed(
        self, mode: str = "", *, root: Path | None = None, inner: str = "", readable: Sequence[Path] = ()
    ) -> Gate:
        """A sub-agent's gate: the same rules and answers, as they are at any time, and the stricter of both modes. `root`: the project's
        copy, if it has one; `inner`: the place of that in its worktree, "": all of it; `readable`: files that it may read, too. Raises
        UnknownMode."""
        child = copy(self)
        child._outer, child._own_mode = self, check_mode(mode) if mode else "trust"
        more, outer = tuple(resolve(folder) for folder in readable), self._narrow
        own_root = "" if root is None else resolve(root)
        child._narrow = lambda places: outer(places).narrowed(more, own_root, inner, places.root)
        return child

    def take_over(self, foreign: Sequence[LayerRules], folders: Sequence[str] = ()) -> None:
        """Rules and folders of other programs' settings, behind cru's own and in place of those before. Raises BadRule."""
        layers, state = (*self._rules, *foreign), self._state
        state.allow = parse_layers(layers, "allow")
        state.ask = parse_layers(layers, "ask")
        state.deny = parse_layers(layers, "deny")
        state.folders, state.granted = tuple(folders), None

    @property
    def _places(self) -> PathRoots:
        granted, state = self._grants.lists(), self._state
        if granted is not state.granted:
            state.places = replace(state.places, folders=tuple(map(resolve, (*granted.folders, *state.folders))))
            state.granted = granted
        return self._narrow(state.places)

    @property
    def _ask(self) -> tuple[Rule, ...]:
        return (*self._state.ask, *self._grants.lists().ask)

    @property
    def _deny(self) -> tuple[Rule, ...]:
        return (*self._state.deny, *self._grants.lists().deny)

    @property
    def _mode(self) -> str:
        return self._own_mode if self._outer is None else stricter(self._outer.mode, self._own_mode)

    @property
    def mode(self) -> str:
        return self._mode

    @mode.setter
    def mode(self, name: str) -> None:
        self.set_mode(name)

    def set_mode(self, name: str, holder: str = "") -> None:
        """holder: the plugin that sets it, which no hook takes it away from; perhaps for a mode of its own that stands on this one. Raises
        UnknownMode."""
        self._own_mode = check_mode(name)
        self._own_holder = holder

    @property
    def mode_holder(self) -> str:
        """The plugin that has set the mode, of this agent or of those above it; "" if none has."""
        return self._own_holder or (self._outer.mode_holder if self._outer is not None else "")

    @property
    def places(self) -> PathRoots:
        """Where this agent works, and what is protected there."""
        return self._places

    @property
    def outside(self) -> OutsideRuns | None:
        """What is known of runs outside of the sandbox; None: nothing confines here."""
        return outside if (outside := self._state.outside) is not None and outside.is_confined else None

    def watch_outside(self, outside: OutsideRuns) -> None:
        """There is a sandbox, or may be one."""
        self._state.outside = outside

    @property
    def is_narrowed(self) -> bool:
        """Whether it is a sub-agent's."""
        return self._outer is not None

    @property
    def grants(self) -> Grants:
        return self._grants

    def rules_of(self, decision: str) -> tuple[Rule, ...]:
        """The rules of the settings and of hooks that allow, ask or deny; those that allow with the kept answers."""
        return {"allow": self._allowing(), "ask": self._ask, "deny": self._deny}[decision]

    def take_problems(self) -> list[str]:
        """What a person is told since the last look: what was wrong with the kept answers, and what was let through."""
        problems, self._grants.problems = self._grants.problems, []
        notes, self._state.notes = self._state.notes, []
        return [*(str(problem) for problem in problems), *notes]

    @property
    def settings_file(self) -> str:
        """The file of the user's own rules, for hints: below the user's home it begins with `~`."""
        user = self._places.user_home.rstrip("/")
        inside = user and self._settings_file.startswith(f"{user}/")
        return f"~{self._settings_file[len(user) :]}" if inside else self._settings_file

    def rules(self) -> tuple[Rule, ...]:
        """Every rule of every layer, for `unknown_tools` and for showing."""
        return (*self._state.deny, *self._state.ask, *self._state.allow)

    def judge(
        self,
        tool: str,
        kind: str,
        detail: str,
        paths: Iterable[tuple[Access, str]] = (),
        *,
        why_ask: str = "",
        receiver: str = "",
        is_outside: bool = False,
    ) -> Verdict:
        """What is to happen with this call: refusals first (deny rules, places, mode), then questions, then permissions. `why_ask`: why
        no mode allows it; `receiver`: the running command that `detail` is typed into; `is_outside`: of the sandbox."""
        try:
            call = self._call(tool, kind, detail, paths, receiver)
            call.is_outside = is_outside
        except ValueError as error:
            return Verdict("deny", f"not a path ({error})")
        granted = self._grants.lists()
        rule = self._first_hit((*self._state.deny, *granted.deny), call)
        if rule is not None:
            reason = f"the rule `{rule.text}` in [permissions] deny of {rule.source}{call.why_unsure}"
            return Verdict("deny", reason, rule.text, explicit=True, source=rule)
        place = self._judge_places(call) if call.paths and self._mode != "trust" else None
        table = decide(self._mode, kind, tool)
        if table == "deny":
            return Verdict("deny", f"{self._mode} mode {MODE_DESCRIPTIONS[self._mode]}, `{tool}` is refused")
        if place is not None and place.decision == "deny":
            return place
        rule = self._first_hit((*self._state.ask, *granted.ask), call)
        if rule is not None:
            reason = f"the rule `{rule.text}` in [permissions] ask of {rule.source} wants a question{call.why_unsure}"
            return Verdict("ask", reason, rule.text, explicit=True, source=rule)
        if place is not None:
            return place
        return self._judge_by_mode(call, table, why_ask)

    def hidden_files(self, tool: str, start: str) -> HiddenFiles | None:
        """What a tool that may look through this folder must not show of it, links in the rules followed as they lead now; None if
        that is nothing."""
        call = self._call(tool, "read", start, [("read", start)])
        with_places = self._mode != "trust" and contains_secrets(call.paths[0].real, self._places)
        if not (self._deny or self._ask or with_places):
            return None
        from cru.core.guard.rules.hidden_files import RuleSets, find_hidden_files

        rules = RuleSets(self._deny, self._ask, self._allowing())
        return find_hidden_files(call, rules, self._places, with_places=with_places)

    def leads_outside(self, tool: str, kind: str, detail: str, paths: Iterable[tuple[Access, str]]) -> bool:
        """Whether the call's paths lead to a place outside of the project that no allow rule and no answer names, whatever the mode."""
        try:
            call = self._call(tool, kind, detail, paths)
        except ValueError:
            return True
        return any(is_outside(path, self._places) and not self._is_named_by_rule(call, path) for path in call.paths)

    def protect(self, files: Iterable[str]) -> None:
        """Protect these files too, from now on: what a person has accepted with their content."""
        spellings = {path for file in files for path in (os.path.abspath(file).replace(os.sep, "/"), resolve(file))}
        self._state.places = replace(self._state.places, guarded=self._state.places.guarded | spellings)

    def _judge_by_mode(self, call: JudgedCall, table: Decision, why_ask: str) -> Verdict:
        if table == "allow" and not why_ask:
            self._note(call)
            return Verdict("allow", f"{self._mode} mode {MODE_DESCRIPTIONS[self._mode]}")
        rules = self._find_allowing(call, named_only=bool(why_ask) and not call.is_outside)
        if self.outside is not None and (why_not := self.outside.judge_rule(call, bool(rules))):
            return Verdict("ask", why_not, needs_rule=True)
        if rules:
            reason = f"allowed by {' and '.join(f'the rule `{rule.text}` of {rule.source}' for rule in rules)}"
            return Verdict("allow", reason, rules[-1].text, explicit=True, source=rules[-1])
        if why_ask:
            return Verdict("ask", why_ask + self._why_uncovered(call), needs_rule=True)
        reason = f"{self._mode} mode asks before {DOING.get(call.kind, f'using `{call.tool}`')}"
        return Verdict("ask", reason + self._why_uncovered(call))

    def _why_uncovered(self, call: JudgedCall) -> str:
        """Of a command that an allow rule covers but for an option, which option."""
        if call.receiver:
            return f"; this is typed into `{call.receiver}`, which a rule `input_to:…` may allow"
        rules = self._allowing() if call.kind == "shell" and not call.is_outside else ()
        if not rules:
            return ""
        from cru.core.guard.rules.option_hints import explain_unnamed_use

        explanation = explain_unnamed_use(rules, call, self._places)
        return f"; {explanation}" if explanation else ""

    def _first_hit(self, rules: Sequence[Rule], call: JudgedCall) -> Rule | None:
        if not rules:
            return None
        from cru.core.guard.rules.rules import rule_hits

        return next((rule for rule in rules if rule_hits(rule, call, self._places)), None)

    def _allowing(self) -> tuple[Rule, ...]:
        return (*self._state.allow, *self._grants.rules())

    def _find_allowing(self, call: JudgedCall, named_only: bool = False) -> tuple[Rule, ...]:
        """named_only: a rule for every call of a tool does not count."""
        rules = tuple(rule for rule in self._allowing() if not named_only or rule.pattern not in (None, "*"))
        if not rules:
            return ()
        from cru.core.guard.rules.rules import find_allowing_rules

        return find_allowing_rules(rules, call, self._places)

    def remember(self, subject: PermissionSubject, reply: PermissionReply) -> None:
        """After session, project and always keep the subject's rule, if it has one, or what the person made of it. Raises NotStored if
        it holds for this session only, and BadRule if that rule is not to be kept."""
        if not subject.rule or reply.choice not in ("session", "project", "always"):
            return
        if reply.rule and (subject.editing is None or subject.editing.why_not(reply.rule)):
            raise BadRule(f"the rule `{reply.rule}` is not kept")
        self._grants.add(reply.choice, reply.rule or subject.rule)

    def editing_for(
        self, rule: str, tool: str, kind: str, detail: str, paths: Iterable[tuple[Access, str]] = ()
    ) -> RuleEditing | None:
        """How a person may edit this rule of `rule_for`."""
        if not rule:
            return None
        from cru.core.guard.rules.edited_rules import editing_of

        return editing_of(self._call(tool, kind, detail, paths), self._places, rule, self._allowing())

    def rule_for(self, tool: str, kind: str, detail: str, paths: Iterable[tuple[Access, str]] = ()) -> str:
        """The rule that the answers session, project and always would store; "" if nothing should be: protected places,
        several paths, what cannot be named by one rule."""
        from cru.core.guard.rules.kept_rules import suggest_kept_rule

        try:  # a rule that is kept for a copy would hold for the project itself
            return "" if self._places.copy else suggest_kept_rule(self._call(tool, kind, detail, paths), self._places)
        except ValueError:
            return ""

    def _call(
        self, tool: str, kind: str, detail: str, paths: Iterable[tuple[Access, str]], receiver: str = ""
    ) -> JudgedCall:
        located = tuple([locate(self._places, access, path) for access, path in paths])
        if not located and kind in ("read", "write"):
            located = (locate(self._places, "read" if kind == "read" else "write", detail),)
        return JudgedCall(tool, kind, detail, located, receiver)

    def _judge_places(self, call: JudgedCall) -> Verdict | None:
        """The strictest verdict on where the call's paths lead, None if all of them are where they may be."""
        verdicts = [verdict for path in call.paths if (verdict := self._judge_path(call, path)) is not None]
        return next((verdict for verdict in verdicts if verdict.decision == "deny"), verdicts[0] if verdicts else None)

    def _judge_path(self, call: JudgedCall, path: ResolvedPath) -> Verdict | None:
        if self._mode == "plan" and path.access == "write":
            return Verdict("deny", f"plan mode {MODE_DESCRIPTIONS['plan']}, and this would change `{path.text}`")
        if is_protected(path, self._places):
            if path.access == "write":
                return Verdict("ask", f"`{path.text}` is protected: changing it always needs a question", by_place=True)
            if not self._is_named_by_rule(call, path):
                return Verdict("ask", f"`{path.text}` is protected: reading it needs a question")
        if path.access == "write":
            from cru.core.guard.rules.later_runs import special_name, why_asked

            special = special_name(path, self._places)
            if special and not self._is_named_by_rule(call, path, special):
                return Verdict("ask", f"`{path.text}` is more than a text: {why_asked(special)}", by_place=True)
        if not is_outside(path, self._places) or self._is_named_by_rule(call, path):
            return None
        target = "" if path.real == path.lexical else f" (it leads to {path.real})"
        return Verdict("ask", f"`{path.text}`{target} is outside the project folder {self._places.root}", by_place=True)

    def _note(self, call: JudgedCall) -> None:
        if call.kind in ("write", "memory"):
            from cru.core.guard.rules.later_runs import note_on

            new = [note for note in note_on(call, self._mode) if note not in self._state.noted]
            self._state.noted.update(new)
            self._state.notes += new

    def _is_named_by_rule(self, call: JudgedCall, path: ResolvedPath, special: str = "") -> bool:
        """Whether an allow rule or an answer names this place outside the project, or writes out what makes a file special."""
        if not (rules := self._allowing()):
            return False
        from cru.core.guard.rules.rules import path_is_covered, writes_out

        return any(
            path_is_covered(rule, call, path, self._places) and (not special or writes_out(rule, special))
            for rule in rules
        )
