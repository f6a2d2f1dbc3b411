"""`--json-config`: a whole command as one JSON object; the last line on standard error says how it ended."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.kit import Call, Done, HomeDir, Reply, Status, cru, server

from cru.faces.cli.flag_names import ABSENT
from cru.faces.cli.flags import FLAGS
from cru.faces.cli.json_mode.commands import COMMANDS
from cru.faces.cli.operations.flag_run import TABLE

FLOCKS = [name[2:].replace("-", "_") for name in ABSENT if name.startswith("--flock")]


def asked(home: HomeDir, wanted: Any, *words: str) -> Done:
    text = wanted if isinstance(wanted, str | bytes) else msgspec.json.encode(wanted)
    return cru("--json-config", *words, home=home, input=text)


def lines(run: Done) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in run.out.splitlines()]


def outputs(run: Done) -> list[str]:
    return [line["payload"]["text"] for line in lines(run) if line["type"] == "output"]


def end(run: Done) -> dict[str, Any]:
    """The done line; standard output ends with a result of the same status."""
    assert "Traceback" not in run.err and lines(run)[-1]["type"] == "result" and lines(run)[-1]["code"] == run.code
    last: dict[str, Any] = msgspec.json.decode(run.err.splitlines()[-1])
    assert last["type"] == "done" and last["ok"] == (run.code == 0)
    return last


def test_a_prompt_with_everything_a_request_may_hold(home: HomeDir) -> None:
    root = home.path / "elsewhere"
    root.mkdir()
    with server([Reply("done")]) as model:
        home.configure(url=model.url)
        wanted = {
            "command": {"send_prompt": {"prompt": "/hällo ☃\nthere"}}, "context": "work", "username": "ann",
            "flags": {"trust": True, "no_tool_calls": True, "verbose": False, "debug": ["request-log"], "destroy_at": 4105166400},
            "home": str(home.cru), "project_root": str(root), "config": {"api": {"temperature": 0.5, "max_tokens": 9}},
            "overrides": {"api.temperature": "0.25"},
        }  # fmt: skip
        run = asked(home, wanted)
    assert end(run) == {"type": "done", "ok": True} and run.code == 0
    body = model.requests[0].body
    assert (body["temperature"], body["max_tokens"]) == (0.25, 9) and "tools" not in body
    assert body["messages"][-1]["content"].strip() == "/hällo ☃\nthere"
    assert "Project root: " + str(root) in body["messages"][0]["content"]
    assert '"from":"ann"' in (home.context("work") / "context.jsonl").read_text()
    assert (home.context("work") / "requests.jsonl").exists()
    assert msgspec.json.decode((home.context("work") / "context_meta.json").read_bytes())["destroy_at"] == 4105166400


def test_every_command_leads_to_a_flag_that_there_is() -> None:
    known = {flag.long for flag in FLAGS}
    for name, command in COMMANDS.items():
        assert {command.flag, command.other} <= {*known, ""}, name
        fields = [f for f in command.fields if f[-1] != "!"]
        for long, least in ((command.flag, [f for f in fields if f[-1] not in "?*"]), (command.other, fields)):
            flag = next((flag for flag in FLAGS if flag.long == long), None)
            assert flag is None or len(flag.args) == len(least) + sum(f[-1] == "*" for f in command.fields), name
            assert flag is None or flag.kind == "option" or long in TABLE


def test_what_is_about_contexts(home: HomeDir) -> None:
    for context in (
        {"switch": {"name": "a"}},
        {"transient": {"name": "b"}},
        {"switch": {"name": "c", "persistent": False}},
        "d",
    ):
        run = asked(home, {"command": {"set_system_prompt": {"prompt": "Be brief."}}, "context": context})
        assert end(run)["ok"], run.err
    assert outputs(asked(home, {"command": "list_contexts"})) == ["* a\n  b\n  c\n  d"]
    assert outputs(asked(home, {"command": {"inspect": {"context": "b", "thing": "system_prompt"}}})) == ["Be brief."]
    assert outputs(asked(home, {"command": {"rename_context": {"old": "b", "new": "e"}}})) == ["Renamed b to e"]
    assert outputs(asked(home, {"command": {"destroy_context": {"name": "c"}}, "context": "c"})) == ["Deleted c"]
    assert outputs(asked(home, {"command": {"destroy_context": {"name": "d"}}})) == ["Deleted d"]
    assert outputs(asked(home, {"command": "list_current_context", "context": "current"}))[0].startswith("Context: a")
    assert sorted(path.name for path in (home.cru / "contexts").iterdir()) == ["a", "e"]


def test_a_user_name_stays_or_is_for_once(home: HomeDir) -> None:
    for username, saved in (({"transient": "bob"}, False), ({"persistent": "ann"}, True)):
        assert end(asked(home, {"command": "no_op", "username": username}))["ok"]
        assert (home.context() / "local.toml").exists() == saved


def test_tools_and_help(home: HomeDir) -> None:
    (home.project / "there.txt").write_text("x")
    assert outputs(asked(home, {"command": {"call_tool": {"name": "ls", "args": {"path": "."}}}})) == ["there.txt\t1"]
    assert outputs(asked(home, {"command": {"call_tool": {"name": "ls", "args": ['{"path": "."}']}}})) == [
        "there.txt\t1"
    ]
    assert outputs(asked(home, {"command": "show_version"}))[0].startswith("cru ")
    assert "cru help flags" in outputs(asked(home, {"command": "show_help"}))[0]


def test_nobody_is_asked_and_trust_is_not_given(home: HomeDir) -> None:
    shell = Reply(calls=[Call("bash", {"command": "touch made"})])
    for flags, made in (({}, False), ({"trust": True}, True)):
        with server([shell, Reply("done")]) as model:
            home.configure(url=model.url)
            wanted = {"command": {"send_prompt": {"prompt": "hi"}}, "context": f"c{len(flags)}", "flags": flags}
            assert end(asked(home, wanted))["ok"]
        assert (home.project / "made").exists() == made


def test_a_turn_that_fails_says_so_in_the_last_line(home: HomeDir) -> None:
    with server([Status(400, body="no such thing")]) as model:
        home.configure(url=model.url)
        run = asked(home, {"command": {"send_prompt": {"prompt": "hi"}}})
    assert end(run)["code"] == "internal_error" and "no such thing" in end(run)["message"]
    with server([Reply("ok")]) as model:
        home.configure(url=model.url)
        again = asked(home, {"command": "resume"})
    assert end(again)["ok"] and lines(again)[-1]["payload"]["response"] == "ok"


@pytest.mark.parametrize(
    ("wanted", "word", "said"),
    [
        ({"command": {"show_log": {"context": "nope", "count": 1}}}, "not_found", "there is no context 'nope'"),
        ({"command": {"destroy_context": {"name": "nope"}}}, "not_found", "there is no context 'nope'"),
        ({"command": {"inspect": {"thing": "gaols"}}}, "invalid_input", "gaols"),
        ({"command": {"rename_context": {"old": "a", "new": "b"}}}, "already_exists", "'b' already"),
        (
            {"command": {"send_prompt": {"prompt": "x"}}, "config": {"modle": "x"}},
            "invalid_data",
            "unknown setting `modle`",
        ),
        ({"command": {"send_prompt": {"prompt": "x"}}, "config": {"fuel": "5"}}, "invalid_data", "`fuel`"),
        (
            {"command": {"send_prompt": {"prompt": "x"}}, "overrides": {"fule": "5"}},
            "invalid_input",
            "unknown setting `fule`",
        ),
        ({"command": {"send_prompt": {"prompt": "x"}}, "context": "a/b"}, "invalid_input", "not a name"),
        ({"command": {"send_prompt": {"prompt": "x"}}, "flags": {"model": "openai:x"}}, "not_found", "openai"),
        *[({"command": name}, "invalid_input", "no groups of contexts") for name in FLOCKS],
    ],
)
def test_the_six_words_for_failures(home: HomeDir, wanted: Any, word: str, said: str) -> None:
    for name in ("a", "b"):
        home.context(name).mkdir(parents=True)
    last = end(asked(home, wanted))
    assert (last["code"], said in last["message"]) == (word, True), last


@pytest.mark.sample(20)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing on standard input"),
        (" \n", "nothing on standard input"),
        ("hello", "not one JSON object"),
        ('{"command":"no_op"} {"command":"no_op"}', "not one JSON object"),
        ('{"command":"no_op"', "not one JSON object"),
        (b'{"command":"\xff"}', "not one JSON object"),
        ("[" * 100_000, "not one JSON object"),
        ("[]", "no object"), ("null", "no object"), ("{}", "`command`"),
        (b"0" * ((32 << 20) + 1), "more than 32 MiB"),
        ('{"command": 5}', "command"), ('{"command": {}}', "one key, not 0"),
        ('{"command": {"no_op": {}, "show_help": {}}}', "one key, not 2"),
        ('{"command": {"no_op": {"x": 1}}}', "has no `x`"), ('{"command": {"no_op": 1}}', "should be an object"),
        ('{"command": "destroy_context"}', "`name` is missing"), ('{"command": {"delete_context": {}}}', "`name` is missing"),
        ('{"command": "no_op", "username": {"persistent": "a\\nb"}}', "not a user name"),
        ('{"command": "nop"}', "there is no command `nop`"), ('{"comand": "no_op"}', "has no `comand`"),
        ('{"command": "send_prompt"}', "`prompt` is missing"), ('{"command": {"send_prompt": {"prompt": 5.5}}}', "`prompt`"),
        ('{"command": {"send_prompt": {"prompt": " "}}}', "there is no prompt"),
        ('{"command": {"show_log": {"count": true}}}', "`count`"), ('{"command": "check_inbox"}', "`context` is missing"),
        ('{"command": {"call_tool": {"name": "ls", "args": "x"}}}', "`args`"),
        ('{"command": {"call_tool": {"name": "ls", "args": [[]]}}}', "`args`"),
        ('{"command": "no_op", "context": 5}', "context"), ('{"command": "no_op", "context": {"swich": {}}}', "has no `swich`"),
        ('{"command": "no_op", "context": {"switch": "a"}}', "should be an object"),
        ('{"command": "no_op", "context": {"switch": {"name": "a", "persistent": 1}}}', "true or false"),
        ('{"command": "no_op", "context": {"transient": {}}}', "`context.transient.name` is missing"),
        ('{"command": "no_op", "username": {"persistent": "a", "transient": "b"}}', "one key, not 2"),
        ('{"command": "no_op", "flags": {"trus": true}}', "has no `trus`"),
        ('{"command": "no_op", "flags": {"json": true}}', "has no `json`"),
        ('{"command": "no_op", "flags": {"trust": "yes"}}', "`flags.trust` should be true or false"),
        ('{"command": "no_op", "flags": {"mode": true}}', "`flags.mode` should be a text"),
        ('{"command": "no_op", "flags": {"destroy_at": "soon"}}', "not a point in time"),
        ('{"command": "no_op", "overrides": {"a": {}}}', "overrides"), ('{"command": "no_op", "home": 5}', "home"),
        ('{"command": "no_op", "config": []}', "config"),
    ],
)  # fmt: skip
def test_what_cannot_be_understood_is_refused(home: HomeDir, text: str | bytes, said: str) -> None:
    run = asked(home, text)
    last = end(run)
    assert (run.code, last["code"]) == (2, "invalid_input") and said in last["message"], last


@pytest.mark.parametrize("words", [("-C", "a"), ("hello",), ("-L",), ("--home", "/tmp")])
def test_nothing_else_stands_on_the_command_line(home: HomeDir, words: tuple[str, ...]) -> None:
    run = asked(home, {"command": "no_op"}, *words)
    assert run.code == 2 and "does not go with --json-config" in end(run)["message"]


def test_a_flag_that_is_unknown_ends_with_a_done_line_too(home: HomeDir) -> None:
    run = asked(home, {"command": "no_op"}, "--bogus")
    assert run.code == 2 and msgspec.json.decode(run.err.splitlines()[-1])["code"] == "invalid_input"
    plain = cru("-x", "tell me of --json-config", home=home)
    assert '"done"' not in plain.err


@pytest.mark.slow
def test_a_program_that_asks_for_a_call_has_answered_nothing(home: HomeDir) -> None:
    """A person who types `cru -P` has: json.md, "nothing is allowed because a program asks"."""
    plugin = home.cru / "plugins" / "who.lua"
    plugin.parent.mkdir(parents=True)
    plugin.write_text('cru.on("tool:before_call", function(ctx, e) cru.notify("origin " .. e.origin) end)\n')
    for name in ("call_tool", "run_plugin"):
        made = home.project / name
        wanted = {"command": {name: {"name": "bash", "args": {"command": f"touch {made}"}}}}
        refused = asked(home, wanted)
        last = end(refused)
        assert (refused.code, last["code"], made.exists()) == (3, "permission_denied", False)
        assert '"flags": {"trust": true}' in refused.err and "origin script" in refused.out
    wanted = {"command": {"call_tool": {"name": "bash", "args": {"command": "touch made"}}}}
    for more in ({"flags": {"trust": True}}, {"flags": {"mode": "trust"}}, {"config": {"mode": "trust"}}):
        assert end(asked(home, wanted | more))["ok"] and (home.project / "made").exists(), more
        (home.project / "made").unlink()
    home.configure('[permissions]\nallow = ["bash:touch *"]\n')
    assert end(asked(home, wanted))["ok"] and (home.project / "made").exists()


def test_nothing_is_destroyed_that_is_not_named(home: HomeDir) -> None:
    for name in ("a", "b"):
        home.context(name).mkdir(parents=True)
    for context in ("current", "a", {"switch": {"name": "b"}}):
        assert end(asked(home, {"command": "destroy_context", "context": context}))["code"] == "invalid_input"
    assert home.context("a").exists() and home.context("b").exists()
    run = asked(home, {"command": {"destroy_context": {"name": "bb"}}})
    assert end(run)["code"] == "not_found" and "did you mean `b`?" in run.err
