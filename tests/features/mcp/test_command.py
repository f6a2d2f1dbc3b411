"""`cru mcp …`: as a user types it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.features.mcp.small_server import SERVER, at_url, http_server, stdio
from tests.kit import Call, HomeDir, Reply, cru, home, server

from cru.faces.cli.flags import parse
from cru.faces.cli.mcp import edit
from cru.faces.cli.mcp.edit import _read_options, _server
from cru.features.mcp import sdk
from cru.features.mcp.sdk import find_missing_sdk

PROGRAM = (sys.executable, str(SERVER))


def config(here: HomeDir) -> str:
    return (here.cru / "config.toml").read_text()


@pytest.mark.slow
def test_a_server_is_added_tried_listed_and_removed(tmp_path: Path) -> None:
    here = home(tmp_path)
    added = cru("mcp", "add", "small", "-e", "TOKEN=${MY_TOKEN:-none}", "--", *PROGRAM, "noise", home=here)
    assert added.code == 0 and "small (small 1) works: 16 tools" in added.out, added
    listed = cru("mcp", home=here)
    assert "works: 16 tools" in listed.out and "TOKEN=${MY_TOKEN:-none}" in listed.out and "config.toml:1" in listed.out
    names = [row["name"] for row in json.loads(cru("mcp", "tools", "small", "--json", home=here).out)]
    assert names[:2] == ["mcp_small_echo", "mcp_small_fail"]
    assert cru("mcp", "remove", "small", home=here).code == 0
    assert "small" not in config(here) and "no MCP server is configured" in cru("mcp", home=here).out


@pytest.mark.slow
def test_comments_in_settings_stay(tmp_path: Path) -> None:
    here = home(tmp_path, config='# mine\nmodel = "x"  # this one\n')
    cru("mcp", "add", "small", "--", *PROGRAM, home=here)
    assert config(here).startswith('# mine\nmodel = "x"  # this one\n')


@pytest.mark.slow
def test_a_server_at_an_address_is_added(tmp_path: Path) -> None:
    here = home(tmp_path)
    with http_server(tmp_path, "key=sesame") as url:
        done = cru(
            "mcp", "add", "far", "--url", url, "--header", "X-Key: ${FAR_KEY}", home=here, env={"FAR_KEY": "sesame"}
        )
        refused = cru("mcp", "test", "far", home=here, env={"FAR_KEY": "wrong"})
    assert "far (small 1) works" in done.out, done
    assert (
        refused.code == 1
        and "answered with the status 403" in refused.err
        and "sesame" not in refused.err + config(here)
    )


def test_a_project_s_server_waits_for_trust(tmp_path: Path) -> None:
    here = home(tmp_path)
    done = cru("mcp", "add", "small", "-s", "project", "--", *PROGRAM, home=here)
    assert "cru trust" in done.out and (here.project / ".cru" / "config.toml").exists()
    assert "not trusted" in cru("mcp", home=here).err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("add",), "needs a name"),
        (("add", "x"), "what is to be started?"),
        (("add", "x y", "--", "true"), "a name is letters"),
        (("add", "x", "-e", "A", "--", "true"), "-e A: it is NAME=VALUE"),
        (("add", "x", "--url", "ftp://a"), "must begin with http"),
        (("add", "x", "--url", "http://a", "--", "true"), "not both"),
        (("add", "x", "-s", "world", "--", "true"), "`user` or `project`"),
        (("add", "x", "--frob", "1"), "does not take --frob"),
        (("remove", "x"), "there is no MCP server x"),
        (("test", "x"), "there is no MCP server x"),
        (("tools",), "needs the name"),
        (("accept",), "needs the name of a server, or --all"),
        (("reject", "x"), "no other program's settings have an MCP server x"),
        (("login", "small"), "small is a program"),
        (("remove", "smal"), "did you mean `small`"),
        (("frob",), "does not take frob"),
    ],
)
def test_bad_words_get_one_clear_error(tmp_path: Path, words: tuple[str, ...], says: str) -> None:
    here = home(tmp_path, config=stdio())
    before = config(here)
    done = cru("mcp", *words, home=here)
    assert done.code in (1, 2) and says in done.err and "Traceback" not in done.err, done
    assert config(here) == before


def test_a_name_is_not_taken_twice(tmp_path: Path) -> None:
    here = home(tmp_path, config=stdio())
    done = cru("mcp", "add", "small", "--", "true", home=here)
    assert done.code == 2 and "there is an MCP server small already" in done.err


def test_why_a_server_does_not_start_stays_known(tmp_path: Path) -> None:
    here = home(tmp_path, config=stdio("small", "exit"))
    tested = cru("mcp", "test", home=here)
    assert tested.code == 1 and "it has ended (exit code 4; cannot start: no licence)" in tested.err
    listed = cru("mcp", home=here).out
    assert (
        "does not work (just now): it has ended (exit code 4; cannot start: no licence); next: cru mcp test small"
        in listed
    )


@pytest.mark.slow
def test_an_openly_written_secret_is_told_and_not_shown(tmp_path: Path) -> None:
    here = home(tmp_path)
    added = cru("mcp", "add", "small", "-e", "API_TOKEN=abcdefgh", "--", *PROGRAM, home=here)
    assert "API_TOKEN stands there as it is" in added.err
    assert "abcdefgh" not in cru("mcp", home=here).out + cru("mcp", "--json", home=here).out + added.err


FOREIGN = {
    "~/.claude.json": json.dumps({"mcpServers": {"a": {"command": "true", "args": ["claude"]}}}),
    ".mcp.json": json.dumps(
        {"mcpServers": {"b": {"type": "http", "url": "http://b.example/mcp", "headers": {"X": "${KEY}"}}}}
    ),
    "~/.codex/config.toml": '[mcp_servers.c]\ncommand = "true"\nenv_vars = ["KEY"]\nstartup_timeout_sec = 5\nenabled_tools = ["x"]\n',
    "~/.gemini/settings.json": json.dumps(
        {"mcpServers": {"d": {"httpUrl": "http://d.example", "timeout": 2000, "excludeTools": ["y"]}}}
    ),
    "crush.json": json.dumps(
        {"mcp": {"e": {"type": "stdio", "command": "true", "env": {"K": "$KEY"}, "disabled_tools": ["z"]}}}
    ),
}


def write_foreign(here: HomeDir) -> None:
    for name, text in FOREIGN.items():
        path = here.path / name[2:] if name.startswith("~/") else here.project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def test_other_programs_servers_are_listed_and_not_used_before_they_are_accepted(tmp_path: Path) -> None:
    with server([Reply("done")]) as model:
        here = home(tmp_path, url=model.url)
        write_foreign(here)
        rows = json.loads(cru("mcp", "--json", home=here).out)
        done = cru("go", home=here)
    assert {row["name"]: row["owner"] for row in rows} == {
        "a": "Claude Code", "b": "Claude Code", "c": "Codex", "d": "Gemini CLI", "e": "Crush",
    }  # fmt: skip
    assert all(row["state"].startswith("not accepted") for row in rows)
    assert "mcp_search" not in [tool["function"]["name"] for tool in model.requests[0].body["tools"]]
    assert "of this project's .mcp.json wait for you: b" in done.err


@pytest.mark.parametrize(
    ("words", "says", "hint"),
    [
        (("test", "b"), "is not accepted", "cru mcp accept b"),
        (("tools", "b"), "is not accepted", "cru mcp accept b"),
        (("login", "b"), "is not accepted", "cru mcp accept b"),
        (("test", "a"), "is rejected", "cru mcp accept a"),
        (("remove", "b"), "b stands in", "cru mcp reject b"),
    ],
)
def test_a_server_that_is_not_accepted_is_no_unknown_one(
    tmp_path: Path, words: tuple[str, ...], says: str, hint: str
) -> None:
    here = home(tmp_path, config=stdio())
    write_foreign(here)
    cru("mcp", "reject", "a", home=here)
    done = cru("mcp", *words, home=here)
    assert done.code == 1 and says in done.err and hint in done.err and "Claude Code" in done.err, done


def test_a_list_of_one_server_has_one_that_waits(tmp_path: Path) -> None:
    here = home(tmp_path)
    write_foreign(here)
    listed = cru("mcp", "list", "b", home=here)
    assert listed.out.startswith("b  not accepted: cru mcp accept b\n") and "Codex" not in listed.out, listed
    assert "there is no MCP server zz" in cru("mcp", "list", "zz", home=here).err


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("table", "says", "hint"),
    [
        ('command = "no-such-program"', "cannot start no-such-program", "install it, or give its whole path in"),
        ('url = "http://127.0.0.1:9/mcp"', "its address cannot be reached", "does it run?"),
    ],
)
def test_the_next_step_for_a_server_that_does_not_start_is_told(
    tmp_path: Path, table: str, says: str, hint: str
) -> None:
    here = home(tmp_path, config=f"[mcp.servers.gone]\n{table}\n")
    tested, listed = cru("mcp", "test", "gone", home=here), cru("mcp", home=here)
    assert says in tested.err and hint in tested.err and f"{here.cru / 'config.toml'}:1" in tested.err, tested
    assert f"next: {hint}" in listed.out, listed


NAMELESS = """
from mcp.server import MCPServer
server = MCPServer("weather")
@server.tool()
def forecast(city: str) -> str:
    return city
server.run()
"""


@pytest.mark.slow
def test_a_server_of_one_tool_and_no_version_is_told_in_plain_words(tmp_path: Path) -> None:
    here = home(tmp_path)
    (here.project / "weather.py").write_text(NAMELESS)
    added = cru("mcp", "add", "weather", "--", sys.executable, "weather.py", home=here)
    assert "weather (weather) works: 1 tool, ready" in added.out, added
    assert "works: 1 tool, ready" in cru("mcp", home=here).out


@pytest.mark.slow
def test_an_accepted_server_is_used_and_a_changed_one_is_a_stranger_again(tmp_path: Path) -> None:
    file = {"mcpServers": {"small": {"command": sys.executable, "args": [str(SERVER)]}}}
    steps = [
        Reply(calls=[Call("mcp_search", {})]),
        Reply(calls=[Call("mcp_small_echo", {"text": "hi"})]),
        Reply("one"),
        Reply("two"),
    ]
    with server(steps) as model:
        here = home(tmp_path, url=model.url, config='[permissions]\nallow = ["mcp_small_echo"]\n')
        (here.project / ".mcp.json").write_text(json.dumps(file))
        assert "is accepted" in cru("mcp", "accept", "small", home=here).out
        cru("go", home=here)
        file["mcpServers"]["small"]["args"] = [str(SERVER), "noise"]
        (here.project / ".mcp.json").write_text(json.dumps(file))
        changed = cru("go", home=here)
    assert model.requests[2].body["messages"][-1]["content"] == "hi"
    assert "wait for you: small" in changed.err
    assert "mcp_small_echo" not in json.dumps(model.requests[3].body["tools"])


def test_own_servers_win_over_others_of_the_same_name(tmp_path: Path) -> None:
    here = home(tmp_path, config=stdio("a"))
    write_foreign(here)
    rows = [row for row in json.loads(cru("mcp", "--json", home=here).out) if row["name"] == "a"]
    assert [row["owner"] for row in rows] == ["cru", "Claude Code"] and "taken" in rows[1]["state"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (".mcp.json", "{", "cannot be read"),
        (".mcp.json", '{"mcpServers": {"x": {"type": "sse", "url": "http://x"}}}', "`sse` is not supported"),
        (".mcp.json", '{"mcpServers": {"x": {"command": 5}}}', "the MCP server x cannot be used here"),
        ("crush.json", '{"mcp": {"x": {"command": "a", "env": {"K": "$(date)"}}}}', "is not run here"),
        (".codex/config.toml", "x = [", "cannot be read"),
    ],
)
def test_other_programs_files_that_cannot_be_used_are_told(tmp_path: Path, name: str, text: str, says: str) -> None:
    here = home(tmp_path)
    (here.project / name).parent.mkdir(exist_ok=True)
    (here.project / name).write_text(text)
    done = cru("mcp", home=here)
    assert done.code == 0 and says in done.err and "Traceback" not in done.err, done


@pytest.mark.slow
def test_calls_go_over_http(tmp_path: Path) -> None:
    steps = [
        Reply(calls=[Call("mcp_search", {})]), Reply(calls=[Call("mcp_far_echo", {"text": "hi"})]),
        Reply(calls=[Call("mcp_far_big", {})]), Reply("done"),
    ]  # fmt: skip
    with http_server(tmp_path) as url, server(steps) as model:
        here = home(tmp_path, url=model.url, config='[permissions]\nallow = ["mcp_far_*"]\n' + at_url(url, "far"))
        done = cru("go", home=here)
    results = [message["content"] for message in model.requests[-1].body["messages"] if message["role"] == "tool"]
    assert results[1] == "hi" and "10,000,000 characters" in results[2], done


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "options", "says"),
    [
        ('deny = ["fetch:http://127.0.0.1*"]', (), "is forbidden by the rule `fetch:http://127.0.0.1*`"),
        ("", ("redirect=http://169.254.169.254/mcp",), "leads to http://169.254.169.254/mcp, which is not followed"),
    ],
)
def test_rules_of_the_network_hold_for_addresses(
    tmp_path: Path, rules: str, options: tuple[str, ...], says: str
) -> None:
    with http_server(tmp_path, *options) as url:
        here = home(tmp_path, config=f"[permissions]\n{rules}\n" + at_url(url, "far"))
        done = cru("mcp", "test", home=here)
    assert done.code == 1 and says in done.err, done


def test_without_the_library_the_error_names_it(tmp_path: Path) -> None:
    here = home(tmp_path, config=stdio())
    hidden = tmp_path / "hidden"
    (hidden / "mcp").mkdir(parents=True)
    (hidden / "mcp" / "__init__.py").write_text("raise ModuleNotFoundError('no', name='mcp')\n")
    done = cru("mcp", "test", home=here, env={"PYTHONPATH": str(hidden)})
    assert done.code == 1 and "pip install 'cru[mcp]'" in done.err, done


@pytest.mark.parametrize(
    "words",
    [("http://127.0.0.1:9/mcp",), ("--", "HTTPS://localhost:9/x"), ("--header", "X-Key: ${K}", "http://127.0.0.1:9")],
)
def test_an_address_is_no_program(words: tuple[str, ...]) -> None:
    options, (name, *program) = _read_options(
        ("web", *words) if words[0] != "--header" else (*words[:2], "web", *words[2:])
    )
    server = _server(options, program)
    assert name == "web" and server.url == words[-1] and not server.command


def test_a_server_that_cannot_run_without_the_extra_is_told_with_the_way_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = home(tmp_path)
    monkeypatch.setenv("CRU_HOME", str(here.cru))
    monkeypatch.chdir(here.project)
    monkeypatch.setattr(edit, "find_missing_sdk", lambda: "mcp")
    for scope in ("user", "project"):
        assert edit.add(parse(["mcp"]), ("-s", scope, f"far-{scope}", "http://127.0.0.1:9/mcp"), "") == 1
        told = capsys.readouterr()
        assert "is saved, but no MCP server can be used yet: mcp is not installed" in told.err
        assert "pip install 'cru[mcp]'" in told.err and "is in " in told.out


def test_what_the_sdk_needs_is_looked_for_without_loading_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_missing_sdk() == ""
    monkeypatch.setattr(sdk, "find_spec", lambda name: None if name == "mcp_types" else object())
    assert find_missing_sdk() == "mcp_types"
