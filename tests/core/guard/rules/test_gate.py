"""The gate: modes, places, order of decisions, what answers keep, and what is told."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.core.guard.rules.world import World, touch

from cru.core.base.config.ignored import restrict_untrusted
from cru.core.base.config.layers import Layer
from cru.core.base.values.mcp_names import join_names
from cru.core.guard import BadRule, UnknownMode
from cru.core.guard.rules import LayerRules, PermissionSettings, RuleLists, layer_rules
from cru.core.guard.rules.gate import Gate, PermissionReply, PermissionSubject, Verdict
from cru.core.guard.rules.grants import Grants
from cru.core.guard.rules.hints import allow_hint
from cru.core.guard.rules.modes import KINDS, MODES, check_mode
from cru.core.guard.rules.rules import parse_rule, unknown_tools

STRENGTH = {"allow": 0, "ask": 1, "deny": 2}


TABLE = {
    "read": ("allow", "allow", "allow", "allow"),
    "write": ("ask", "allow", "deny", "allow"),
    "shell": ("ask", "ask", "deny", "allow"),
    "fetch": ("ask", "ask", "deny", "allow"),
    "memory": ("allow", "allow", "allow", "allow"),
    "message": ("ask", "ask", "deny", "allow"),
    "flow": ("allow", "allow", "allow", "allow"),
    "query": ("allow", "allow", "allow", "allow"),
    "tool": ("ask", "ask", "deny", "allow"),
    "unheard_of": ("ask", "ask", "deny", "allow"),
}


@pytest.mark.parametrize("kind", TABLE)
def test_each_mode_decides_for_each_kind(world: World, kind: str) -> None:
    for mode, decision in zip(("ask", "auto", "plan", "trust"), TABLE[kind], strict=True):
        verdict = world.gate(mode).judge("some_tool", kind, "src/a.py")
        assert (verdict.decision, verdict.explicit) == (decision, False)
        assert mode in verdict.reason
    assert set(TABLE) == {*KINDS, "unheard_of"}


def test_the_tables_are_complete() -> None:
    assert all(set(table) == set(KINDS) for table in MODES.values())


def test_a_mode_can_be_changed_and_an_unknown_one_is_reported(world: World) -> None:
    gate = world.gate()
    gate.mode = "trust"
    assert gate.mode == "trust" and gate.judge("bash", "shell", "x").decision == "allow"
    with pytest.raises(UnknownMode, match="unknown mode `pln`") as caught:
        gate.mode = "pln"
    assert caught.value.code == 2 and gate.mode == "trust"
    with pytest.raises(UnknownMode, match="modes are ask, auto, plan, trust"):
        check_mode("acceptEdits")


@pytest.mark.parametrize("mode", ["ask", "auto", "trust"])
def test_what_no_mode_allows_needs_a_rule_that_names_it(world: World, mode: str) -> None:
    why = "the command would go on when cru has ended (`detached`)"
    rules = ("bash:npm run dev", "bash", "*", "shell:*")
    named, other = (world.gate(mode, allow=rules).judge("bash", "shell", c, why_ask=why) for c in ("npm run dev", "x"))
    assert (named.decision, named.explicit) == ("allow", True)
    assert (other.decision, other.reason, other.needs_rule) == ("ask", why, True)
    assert allow_hint("bash", "bash:x", "shell", other) == (
        'nobody can be asked here; allow `bash` with `[permissions] allow = ["bash:x"]` in ~/.cru/config.toml'
    )
    assert allow_hint("bash", "", "shell", other) == "nobody can be asked here; run cru on a terminal"


def test_what_no_mode_allows_is_refused_in_plan_mode_and_by_rules(world: World) -> None:
    assert world.gate("plan", allow=("bash:x",)).judge("bash", "shell", "x", why_ask="why").decision == "deny"
    verdict = world.gate("trust", allow=("bash:x",), deny=("bash:x",)).judge("bash", "shell", "x", why_ask="why")
    assert verdict.decision == "deny"


def test_plan_mode_beats_allow_rules_and_ask_rules_do_not_soften_it(world: World) -> None:
    gate = world.gate("plan", allow=("*",), ask=("bash", "edit"))
    assert gate.judge("bash", "shell", "x").decision == "deny"
    assert touch(gate, "write", "a").decision == "deny"


def test_a_deny_rule_beats_every_mode_rule_and_answer(world: World) -> None:
    gate = world.gate("trust", allow=("bash",), ask=("bash",), deny=("bash:x",))
    gate.remember(PermissionSubject("bash", "shell", "x", rule="bash:x"), PermissionReply("session"))
    assert gate.judge("bash", "shell", "x").decision == "deny"


@pytest.mark.parametrize(
    ("rule", "url", "decision"),
    [
        ("fetch:https://example.com/*", "https://example.com/a?b", "allow"),
        ("fetch:https://example.com/*", "HTTPS://Example.COM:443/a", "allow"),
        ("fetch:https://example.com", "https://example.com/a", "allow"),
        ("fetch:https://example.com*", "https://example.com/a", "allow"),
        ("fetch:https://example.com*", "https://example.com.evil.net/a", "ask"),
        ("fetch:https://example.com/*", "https://example.com@evil.net/", "ask"),
        ("fetch:https://example.com/*", "https://example.com\\@evil.net/", "ask"),
        ("fetch:https://example.com/*", "https://evil.net/https://example.com/", "ask"),
        ("fetch:https://example.com/*", "https://evil.net#https://example.com/", "ask"),
        ("fetch:https://example.com/*", "http://example.com/a", "ask"),
        ("fetch:https://example.com/*", "https://example.com:8443/a", "ask"),
        ("fetch:https://example.com/*", "https://sub.example.com/a", "ask"),
        ("fetch:https://*.example.com/*", "https://sub.example.com/a", "allow"),
        ("fetch:https://*.example.com/*", "https://evil.net/.example.com/a", "ask"),
        ("fetch:https://*.example.com/*", "https://evil.net:80.example.com/a", "ask"),
        ("fetch:https://*.example.com/*", "https://evil.net%2f.example.com/a", "ask"),
        ("fetch:https://example.com/docs/*", "https://example.com/docs/../admin", "ask"),
        ("fetch:https://example.com/docs/*", "https://example.com/docs/%2e%2e/admin", "ask"),
        ("fetch:https://example.com/docs/*", "https://example.com/docs/a", "allow"),
        ("fetch:https://example.com/*", "https://example.com/\n", "ask"),
        ("fetch", "gopher:x", "allow"),
        ("fetch:*", "gopher:x", "allow"),
    ],
)
def test_allow_rules_on_urls_compare_hosts(world: World, rule: str, url: str, decision: str) -> None:
    assert world.gate(allow=(rule,)).judge("fetch", "fetch", url).decision == decision


@pytest.mark.parametrize(
    "url",
    ["http://evil.net/x", "HTTP://EVIL.net/x", "http://user@evil.net/x", "http://evil.net:80/x", "http://evil.net./x"],
)
def test_deny_rules_on_urls_see_through_spellings(world: World, url: str) -> None:
    assert world.gate("trust", deny=("fetch:http://evil.net/*",)).judge("fetch", "fetch", url).decision == "deny"
    assert world.gate("trust", deny=("fetch:http://evil.net",)).judge("fetch", "fetch", url).decision == "deny"


@pytest.mark.parametrize(
    ("tool", "kind", "detail", "rule"),
    [
        ("edit", "write", "src/a.py", "edit:src/*"),
        ("edit", "write", "a.py", "edit:a.py"),
        ("edit", "write", "st*r", "edit:st\\*r"),
        ("edit", "write", ".", ""),
        ("edit", "write", "inner/a.py", "edit:src/*"),
        ("edit", "write", "st*r/a", "edit:st\\*r/*"),
        ("read", "read", "/etc/hosts", "read:/etc/hosts"),
        ("fetch", "fetch", "https://Example.com/a/b", "fetch:https://example.com/*"),
        ("fetch", "fetch", "https://u@example.com/", ""),
        ("mcp_x", "tool", "anything", "mcp_x"),
    ],
)
def test_the_rule_of_an_answer_allows_the_call_the_next_time(
    world: World, tool: str, kind: str, detail: str, rule: str
) -> None:
    gate = world.gate()
    assert gate.rule_for(tool, kind, detail) == rule
    if rule:
        gate.remember(PermissionSubject(tool, kind, detail, rule=rule), PermissionReply("session"))
        assert gate.judge(tool, kind, detail).decision == "allow"


@pytest.mark.parametrize(
    ("choice", "here", "again", "elsewhere"),
    [
        ("once", "ask", "ask", "ask"),
        ("no", "ask", "ask", "ask"),
        ("session", "allow", "ask", "ask"),
        ("project", "allow", "allow", "ask"),
        ("always", "allow", "allow", "allow"),
    ],
)
def test_an_answer_is_kept_as_long_as_it_says(
    world: World, choice: Literal["once", "session", "project", "always", "no"], here: str, again: str, elsewhere: str
) -> None:
    gate = world.gate()
    gate.remember(PermissionSubject("bash", "shell", "make", rule="bash:make"), PermissionReply(choice))
    assert gate.judge("bash", "shell", "make").decision == here
    assert world.gate().judge("bash", "shell", "make").decision == again
    world.root = world.outside
    assert world.gate().judge("bash", "shell", "make").decision == elsewhere


def test_an_empty_rule_is_never_stored(world: World) -> None:
    gate = world.gate()
    gate.remember(PermissionSubject("edit", "write", ".git/x"), PermissionReply("always"))
    assert not (world.home / "grants.json").exists()


@pytest.mark.parametrize("mode", ["ask", "auto"])
def test_no_mode_is_offered_that_does_not_allow_a_place(world: World, mode: str) -> None:
    outside = str(world.outside / "x.md")
    verdict = world.gate(mode=mode).judge("write", "write", outside)
    told = allow_hint("write", f"write:{outside}", "write", verdict)
    assert verdict.decision == "ask" and "--mode auto" not in told and "`-t`" in told


def test_the_ways_to_allow_are_told() -> None:
    told = allow_hint("bash", 'bash:echo "x"')
    assert "nobody can be asked here" in told and "`-t`" in told
    assert tomllib.loads(told.partition("`[permissions] ")[2].partition("`")[0]) == {"allow": ['bash:echo "x"']}
    assert "--mode auto" in allow_hint("edit", "edit:src/*", "write")
    assert "--mode auto" not in told
    assert allow_hint("edit", "") == "nobody can be asked here; allow `edit` with `-t`"
    asked = allow_hint("bash", "bash:x", "shell", Verdict("ask", "", "bash:*", explicit=True))
    assert "take the rule out of [permissions] ask" in asked and "-t" not in asked


@pytest.mark.parametrize("text", ["", ":x", " bash", "bash:", "bash: ", "Bash(git:*)", "run this"])
def test_a_rule_that_cannot_be_read_says_what_to_write(text: str) -> None:
    with pytest.raises(BadRule) as caught:
        parse_rule(text)
    assert caught.value.hint.startswith("write ")


def test_a_rule_that_names_no_tool_is_reported_with_the_closest() -> None:
    rules = [parse_rule(text, "config.toml") for text in ("bsh:git *", "bash", "mcp_*", "read", "shell", "*")]
    (problem,) = unknown_tools(rules, ["bash", "read"])
    assert str(problem) == "config.toml: rule `bsh:git *` names no tool (did you mean `bash`?)"


def test_rules_keep_their_layer_in_the_reason(world: World) -> None:
    more = (LayerRules("command line", RuleLists(deny=("bash:x",))),)
    assert "of the command line" in world.gate(more=more).judge("bash", "shell", "x").reason
    layers = [Layer("user", {"permissions": {"deny": ["bash"]}}, "/h/config.toml"), Layer("context", {"model": "x"})]
    assert layer_rules(layers) == (LayerRules("user", RuleLists(deny=("bash",)), "/h/config.toml"),)


RULES = st.lists(
    st.sampled_from(
        ["*", "bash", "bash:*", "bash:git *", "bash:rm *", "shell", "edit", "edit:src/*", "write:**", "read:/**", "read", "fetch",
         "fetch:https://h/*", "read:.env", "tool", "memory", "b*:git push"]
    ),
    max_size=3,
)  # fmt: skip
CALLS = st.sampled_from(
    [
        ("bash", "shell", "git status"),
        ("bash", "shell", "git push; rm x"),
        ("bash", "shell", "echo $(rm x)"),
        ("edit", "write", "src/a.py"),
        ("edit", "write", ".git/config"),
        ("read", "read", ".env"),
        ("read", "read", "/etc/passwd"),
        ("fetch", "fetch", "https://h/x"),
        ("other", "tool", "x"),
        ("update_todos", "memory", "x"),
    ]
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    mode=st.sampled_from(sorted(MODES)),
    user=st.tuples(RULES, RULES, RULES),
    project=st.tuples(RULES, RULES, RULES),
    extra=st.sampled_from([{}, {"mode": "trust"}, {"permissions_": 1}]),
    call=CALLS,
)
def test_an_untrusted_project_never_weakens_a_verdict(
    world: World,
    mode: str,
    user: tuple[list[str], list[str], list[str]],
    project: tuple[list[str], list[str], list[str]],
    extra: dict[str, object],
    call: tuple[str, str, str],
) -> None:
    allow, ask, deny = (tuple(rules) for rules in user)
    lists = dict(zip(("allow", "ask", "deny"), project, strict=True))
    layer, _ = restrict_untrusted(Layer("project", {"permissions": lists, **extra}, "p.toml"))
    alone = world.gate(mode, allow=allow, ask=ask, deny=deny).judge(*call)
    both = world.gate(mode, allow=allow, ask=ask, deny=deny, more=layer_rules([layer])).judge(*call)
    assert STRENGTH[both.decision] >= STRENGTH[alone.decision]


def test_judging_a_command_without_rules_costs_next_to_nothing(world: World) -> None:
    gate, functions = world.gate(), []
    gate.judge("bash", "shell", "make test && git status")  # what is loaded and cached at the first time does not count
    sys.setprofile(
        lambda frame, event, argument: functions.append(frame.f_code.co_qualname) if event == "call" else None
    )
    try:
        gate.judge("bash", "shell", "make test && git status")
    finally:
        sys.setprofile(None)
    assert 0 < len(functions) <= 24, functions


def test_an_answer_about_a_file_in_the_root_is_about_no_other_file(world: World) -> None:
    gate = world.gate()
    gate.remember(
        PermissionSubject("edit", "write", "a.py", rule=gate.rule_for("edit", "write", "a.py")),
        PermissionReply("session"),
    )
    assert gate.judge("edit", "write", "a.py").decision == "allow"
    assert gate.judge("edit", "write", "Makefile").decision == "ask"
    assert gate.judge("edit", "write", "src/a.py").decision == "ask"


def test_the_users_own_rules_lie_in_the_home_folder_wherever_it_is(world: World) -> None:
    assert world.gate().settings_file == "~/.cru/config.toml"
    elsewhere = Gate(
        PermissionSettings("ask"),
        [],
        world.root,
        world.outside,
        Grants(world.home / "g", world.root),
        user_home=world.user,
    )
    assert elsewhere.settings_file == f"{world.outside}/config.toml"
    told = allow_hint("bash", "bash:x", file=elsewhere.settings_file)
    assert f"in {world.outside}/config.toml" in told and "~/.cru" not in told


def test_a_folder_called_tilde_is_not_the_users_home(world: World) -> None:
    gate = world.gate()
    for name in ("./~/notes", "./~"):
        rule = gate.rule_for("edit", "write", name)
        gate.remember(PermissionSubject("edit", "write", name, rule=rule), PermissionReply("session"))
        assert gate.judge("edit", "write", name).decision == "allow"
    assert gate.judge("edit", "write", "~/notes").decision == "ask"


@pytest.mark.parametrize(
    ("allow", "decision"),
    [
        ("mcp_git_*", "ask"), ("mcp_git*", "ask"), ("mcp_git_x_*", "allow"), ("mcp_git_x_delete", "allow"), ("mcp_git_x_d*", "allow"),
        ("mcp_*", "allow"), ("*", "allow"), ("tool", "allow"), ("mcp_git_x*", "ask"),
    ],
)  # fmt: skip
def test_an_allow_rule_for_a_server_is_not_about_one_whose_name_begins_the_same(
    world: World, allow: str, decision: str
) -> None:
    name = join_names("git_x", "delete")
    assert world.gate(allow=(allow,)).judge(name, "tool", "{}").decision == decision
    assert world.gate(deny=(allow,)).judge(name, "tool", "{}").decision == "deny", "what forbids covers both"


@pytest.mark.parametrize("rule", ["mcp__git_x__delete", "mcp__git_x", "mcp__git_x__*"])
def test_rules_may_name_tools_of_servers_as_other_programs_do(world: World, rule: str) -> None:
    name = join_names("git_x", "delete")
    assert world.gate(deny=(rule,)).judge(name, "tool", "{}").decision == "deny"
    assert world.gate(allow=(rule,)).judge(name, "tool", "{}").decision == "allow"
    assert world.gate(allow=(rule,)).judge(join_names("git", "delete"), "tool", "{}").decision == "ask"


@pytest.mark.parametrize(
    ("server", "tool", "rule"),
    [
        ("my.srv", "drop/table", "mcp__my.srv__drop/table"), ("my.srv", "drop.table", "mcp_my.srv_drop.table"),
        ("my__srv", "drop", "mcp__my__srv__drop"), ("my__srv", "drop", "mcp__my__srv"), ("my__srv", "drop", "mcp__my__srv__*"),
        ("srv", "drop_" * 20, "mcp__srv__" + "drop_" * 20), ("srv", "drop_" * 20, "mcp_srv_" + "drop_" * 20),
        ("srv", "drop_" * 20 + "all", "mcp__srv__*all"), ("my.srv", "drop", "mcp__my.srv:*"),
    ],
)  # fmt: skip
def test_a_rule_that_forbids_may_write_a_tool_as_its_server_does(
    world: World, server: str, tool: str, rule: str
) -> None:
    name = join_names(server, tool)
    for forbidding, gate in (
        ("deny", world.gate(allow=("*",), deny=(rule,))),
        ("ask", world.gate(allow=("*",), ask=(rule,))),
    ):
        assert gate.judge(name, "tool", "{}").decision == forbidding
        assert gate.judge(join_names("other", "drop"), "tool", "{}").decision == "allow"


def test_every_rule_that_a_pipe_needed_is_named(tmp_path: Path) -> None:
    judge = World(tmp_path).gate(allow=("bash:git log *", "bash:head *", "bash:wc *"))
    verdict = judge.judge("bash", "shell", "git log | head -3; git log -1 | head")
    assert verdict.decision == "allow" and verdict.reason.count("the rule `") == 2
    assert "the rule `bash:git log *` of" in verdict.reason and "and the rule `bash:head *` of" in verdict.reason
