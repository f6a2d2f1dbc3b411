"""MCP servers in runs of cru: real programs, a real model server, a fresh home."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from tests.features.mcp.small_server import stdio
from tests.kit import Call, Done, HomeDir, Received, Reply, cru, home, server, start, wait_until

ALLOW = '[permissions]\nallow = ["mcp_small_*"]\n'


def tools_of(request: Received) -> list[str]:
    return [tool["function"]["name"] for tool in request.body["tools"]]


def results(request: Received) -> list[str]:
    return [message["content"] for message in request.body["messages"] if message["role"] == "tool"]


def run_calls(
    tmp_path: Path, config: str, *calls: Call, words: tuple[str, ...] = ("go",)
) -> tuple[Done, list[str], HomeDir]:
    """A run in which the model makes these calls, one a round; what it read of each."""
    with server([*(Reply(calls=[call]) for call in calls), Reply("done")]) as model:
        here = home(tmp_path, url=model.url, config=config)
        done = cru(*words, home=here)
        return done, results(model.requests[-1]), here


def echo(text: str, name: str = "mcp_small_echo") -> Call:
    return Call(name, {"text": text})


def test_a_servers_tools_are_searched_for_and_called(tmp_path: Path) -> None:
    with server(
        [Reply(calls=[Call("mcp_search", {"query": "say again"})]), Reply(calls=[echo("hello")]), Reply("done")]
    ) as model:
        here = home(tmp_path, url=model.url, config=ALLOW + stdio())
        done = cru("go", home=here)
    first, second, third = model.requests
    assert (done.code, done.out) == (0, "done\n"), done
    assert "mcp_search" in tools_of(first) and "mcp_small_echo" not in tools_of(first)
    assert "mcp_small_echo" in tools_of(second)
    assert results(third)[1] == "hello"


@pytest.mark.slow
def test_what_was_sent_stays_as_it_was_when_tools_join(tmp_path: Path) -> None:
    with server([Reply(calls=[Call("mcp_search", {})]), Reply("done")]) as model:
        here = home(tmp_path, url=model.url, config=stdio())
        cru("go", home=here)
    first, second = (request.body for request in model.requests)
    assert second["tools"][: len(first["tools"])] == first["tools"] and len(second["tools"]) > len(first["tools"])
    assert second["messages"][: len(first["messages"])] == first["messages"]


@pytest.mark.slow
def test_the_first_request_waits_for_no_server(tmp_path: Path) -> None:
    """The server does not answer before the file is there, and the file is made at the first request."""
    gate = tmp_path / "gate"

    def model_rule(request: Received) -> Reply:
        gate.touch()
        return Reply("done") if results(request) else Reply(calls=[Call("mcp_search", {"query": "echo"})])

    with server(model_rule) as model:
        here = home(tmp_path, url=model.url, config=stdio("small", f"wait={gate}"))
        done = cru("go", home=here)
    assert done.code == 0, done
    assert "mcp_small_echo" in results(model.requests[1])[0]


def test_a_server_is_not_started_before_the_first_request(tmp_path: Path) -> None:
    count = tmp_path / "count"

    def model_rule(request: Received) -> Reply:
        started.append(count.exists())
        return Reply("done")

    started: list[bool] = []
    with server(model_rule) as model:
        cru("go", home=home(tmp_path, url=model.url, config=stdio("small", f"count={count}")))
    assert started == [False]


@pytest.mark.slow
def test_the_next_run_offers_the_tools_at_once(tmp_path: Path) -> None:
    with server(
        [Reply(calls=[Call("mcp_search", {})]), Reply("one"), Reply(calls=[echo("two")]), Reply("three")]
    ) as model:
        here = home(tmp_path, url=model.url, config=ALLOW + stdio())
        cru("go", home=here)
        cru("again", home=here)
    assert "mcp_small_echo" in tools_of(model.requests[2])
    assert results(model.requests[3])[-1] == "two"


def test_a_call_by_hand_waits_for_the_server(tmp_path: Path) -> None:
    here = home(tmp_path, config=stdio())
    done = cru("-P", "mcp_small_echo", '{"text": "by hand"}', home=here)
    assert (done.code, done.out) == (0, "by hand"), done


def test_a_tool_that_is_not_allowed_is_refused_where_nobody_is(tmp_path: Path) -> None:
    _, read, _ = run_calls(tmp_path, stdio(), Call("mcp_search", {}), echo("hello"))
    assert read[1].startswith("Not allowed by policy") and "nobody can be asked" in read[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ('deny = ["mcp_small_*"]\nallow = ["*"]', "the rule `mcp_small_*`"),
        ('deny = ["mcp_small_echo:*secret*"]\nallow = ["*"]', "the rule `mcp_small_echo:*secret*`"),
        ('ask = ["tool"]\nallow = ["mcp_small_*"]', "the rule `tool`"),
    ],
)
def test_rules_hold_for_tools_of_servers(tmp_path: Path, rules: str, says: str) -> None:
    _, read, _ = run_calls(tmp_path, f"[permissions]\n{rules}\n" + stdio(), Call("mcp_search", {}), echo("secret"))
    assert says in read[1]


@pytest.mark.slow
def test_plan_mode_refuses_what_is_not_trusted_to_read_only(tmp_path: Path) -> None:
    _, read, _ = run_calls(tmp_path, stdio(), Call("mcp_search", {}), echo("x"), words=("--mode", "plan", "go"))
    assert "plan mode only reads" in read[1]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["plan", "ask"])
def test_a_servers_word_that_it_only_reads_counts_if_that_is_trusted(tmp_path: Path, mode: str) -> None:
    config = stdio("small", trust_read_only=True)
    _, read, _ = run_calls(
        tmp_path,
        config,
        Call("mcp_search", {}),
        echo("x"),
        Call("mcp_small_env", {"name": "A"}),
        words=("--mode", mode, "go"),
    )
    assert read[1] == "x"
    assert "Not allowed" in read[2]


@pytest.mark.slow
def test_a_hook_hears_and_refuses_a_call(tmp_path: Path) -> None:
    refuse = 'return {cancel = true, reason = "no echoes"}'
    plugin = f'cru.on("tool:before_call", function(ctx, e) if e.name == "mcp_small_echo" then {refuse} end end)'
    with server([Reply(calls=[Call("mcp_search", {})]), Reply(calls=[echo("x")]), Reply("done")]) as model:
        here = home(tmp_path, url=model.url, config=ALLOW + stdio())
        (here.cru / "init.lua").write_text(plugin)
        cru("go", home=here)
    assert "no echoes" in results(model.requests[-1])[1]


@pytest.mark.slow
def test_events_tell_of_a_server_and_its_tools(tmp_path: Path) -> None:
    plugin = (
        'local names = {}\ncru.on("mcp:attached", function(ctx, e) cru.notify("attached " .. e.server .. " " .. e.tool_count) end)\n'
        'cru.on("tool:discovered", function(ctx, e) if e.name == "mcp_small_echo" then cru.notify("discovered " .. e.source) end end)'
    )
    with server([Reply(calls=[Call("mcp_search", {})]), Reply("done")]) as model:
        here = home(tmp_path, url=model.url, config=stdio())
        (here.cru / "init.lua").write_text(plugin)
        done = cru("-v", "go", home=here)
    assert "attached small 16" in done.err and "discovered small" in done.err, done


def test_settings_choose_among_the_tools(tmp_path: Path) -> None:
    config = stdio("small", allow_tools=["e*", "fail"], deny_tools=["env"])
    _, read, _ = run_calls(tmp_path, config, Call("mcp_search", {}))
    assert read[0].split() == ["mcp_small_echo", "mcp_small_fail"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "says"),
    [
        (Call("mcp_small_fail", {}), "it did not work"),
        (Call("mcp_small_raise", {}), "unknown: raise"),
        (Call("mcp_small_structured", {}), '{"answer":42}'),
        (Call("mcp_small_progress", {}), "done"),
        (Call("mcp_small_flood", {}), "flooded"),
        (Call("mcp_small_echo", {}), "bad arguments for mcp_small_echo: `text`: it is missing"),
        (Call("mcp_small_echo", "[1]"), "must be a JSON object, got a list"),
        (Call("mcp_small_nothing", {}), "there is no tool `mcp_small_nothing`"),
        (Call("mcp_small_ask", {}), '{"action": "decline"}'),
        (Call("mcp_small_sample", {}), "nobody permits it"),
    ],
)
def test_what_comes_of_calls(tmp_path: Path, call: Call, says: str) -> None:
    done, read, _ = run_calls(tmp_path, ALLOW + stdio(), Call("mcp_search", {}), call)
    assert done.code == 0 and says in read[1], (done, read[1])


def test_the_project_is_the_root_that_a_server_is_told(tmp_path: Path) -> None:
    _, read, here = run_calls(tmp_path, ALLOW + stdio(), Call("mcp_search", {}), Call("mcp_small_roots", {}))
    assert json.loads(read[1])["roots"] == [{"uri": here.project.as_uri(), "name": "project"}]


@pytest.mark.slow
def test_a_server_that_dies_in_a_call_is_started_again(tmp_path: Path) -> None:
    done, read, _ = run_calls(
        tmp_path, ALLOW + stdio(), Call("mcp_search", {}), Call("mcp_small_die", {}), echo("again")
    )
    assert "has ended (exit code 3; the last words)" in read[1] and "may have run" in read[1]
    assert read[2] == "again", done


@pytest.mark.slow
def test_a_long_result_is_saved_to_a_file(tmp_path: Path) -> None:
    _, read, here = run_calls(tmp_path, ALLOW + stdio(), Call("mcp_search", {}), Call("mcp_small_big", {}))
    path = next(Path(line) for line in read[1].splitlines() if line.startswith("/"))
    assert path.stat().st_size == 10_000_000 and path.is_relative_to(here.cru)


@pytest.mark.slow
def test_pictures_become_files(tmp_path: Path) -> None:
    _, read, here = run_calls(tmp_path, ALLOW + stdio(), Call("mcp_search", {}), Call("mcp_small_image", {}))
    picture, link, inside = read[1].splitlines()
    path = Path(picture.partition("saved in ")[2].removesuffix("]"))
    assert path.read_bytes().startswith(b"\x89PNG") and path.stat().st_mode & 0o777 == 0o600
    assert path.is_relative_to(here.cru) and (link, inside) == ("[resource test://linked: linked]", "inside")
    entry = next(entry for entry in here.log() if "saved in" in entry["content"])
    (image,) = entry["metadata"]["images"]
    assert (here.context() / "images" / image["digest"]).read_bytes() == path.read_bytes()


def test_a_call_without_an_answer_ends_with_its_time(tmp_path: Path) -> None:
    _, read, _ = run_calls(
        tmp_path, ALLOW + stdio("small", call_timeout=0.3), Call("mcp_search", {}), Call("mcp_small_hang", {})
    )
    assert "did not answer within 0.3 s" in read[1]


@pytest.mark.slow
def test_an_interrupt_ends_a_call_and_the_server_is_told(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with server([Reply(calls=[Call("mcp_search", {})]), Reply(calls=[Call("mcp_small_hang", {})])]) as model:
        here = home(tmp_path, url=model.url, config=ALLOW + stdio("small", f"log={log}"))
        with start("go", home=here) as run:
            wait_until(lambda: log.exists() and "hang" in log.read_text(), what="the call")
            run.interrupt()
            done = run.wait()
    assert done.code == 130, done
    assert "cancelled" in log.read_text()


@pytest.mark.slow
def test_tools_that_come_later_join(tmp_path: Path) -> None:
    later = Call("bash", {"command": "sleep 1"})
    calls = [Call("mcp_search", {}), Call("mcp_small_more", {}), later, Call("mcp_small_late", {})]
    done, read, _ = run_calls(tmp_path, stdio(), *calls, words=("--mode", "trust", "go"))
    assert read[3] == "late", (done, read)


@pytest.mark.slow
def test_odd_tools_are_left_out_and_told(tmp_path: Path) -> None:
    done, read, here = run_calls(tmp_path, stdio("small", "odd-tools"), Call("mcp_search", {}))
    names = read[0].split()
    assert "mcp_small_a_b" in names and names.count("mcp_small_echo") == 1
    for text in (
        "no_schema is left out",
        "characters that cannot be seen",
        "echo is left out the second time",
        "a_b of small is left out",
    ):
        assert text in done.err, (text, done.err)
    request = (here.context() / "trace.jsonl").read_text()
    assert "\x1b[2J" not in request and "\u202e" not in request


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "says"),
    [
        (stdio("small", "exit"), "it has ended (exit code 4; cannot start: no licence)"),
        (stdio("small", "silent", start_timeout=0.5), "it did not answer within 0.5 s"),
        (stdio("small", "version=1999-01-01"), "Unsupported protocol version"),
        ('[mcp.servers.small]\ncommand = "no-such-program"\n', "cannot start no-such-program"),
        ("[mcp.servers.small]\nenabled = true\n", "neither `command` nor `url`"),
        ('[mcp.servers.small]\nurl = "http://127.0.0.1:9/mcp"\n', "All connection attempts failed"),
        ('[mcp.servers.small]\ncommand = "${NOT_SET_ANYWHERE}"\n', "the variable NOT_SET_ANYWHERE is not set"),
    ],
)
def test_a_server_that_does_not_start_is_told_with_the_reason(tmp_path: Path, config: str, says: str) -> None:
    done, read, _ = run_calls(tmp_path, config, Call("mcp_search", {"query": "echo"}))
    assert done.code == 0 and done.err.count(says) == 1 and says in read[0], (done, read)
    assert "Traceback" not in done.err


@pytest.mark.slow
def test_secrets_come_from_the_environment_and_stay_out_of_records(tmp_path: Path) -> None:
    config = ALLOW + stdio("small") + '[mcp.servers.small.env]\nAPI_KEY = "${MY_SECRET}"\n'
    with server(
        [
            Reply(calls=[Call("mcp_search", {})]),
            Reply(calls=[Call("mcp_small_env", {"name": "API_KEY"})]),
            Reply("done"),
        ]
    ) as model:
        here = home(tmp_path, url=model.url, config=config)
        done = cru("go", home=here, env={"MY_SECRET": "hunter2-hunter2"})
        assert results(model.requests[-1])[1] == "hunter2-hunter2"
    shown = cru("mcp", home=here)
    for name in ("trace.jsonl", "journal.jsonl"):
        assert "hunter2" not in (here.context() / name).read_text(), name
    assert "hunter2" not in done.err + shown.out and "${MY_SECRET}" in shown.out, shown


def processes_of(here: HomeDir) -> list[str]:
    marks = f"HOME={here.path}\0".encode()
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if marks in Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
        except OSError:
            continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("stubborn",)])
def test_nothing_is_left_of_a_server_when_the_run_ends(tmp_path: Path, options: tuple[str, ...]) -> None:
    _, read, here = run_calls(
        tmp_path, ALLOW + stdio("small", *options), Call("mcp_search", {}), Call("mcp_small_child", {})
    )
    assert read[1].isdigit()
    wait_until(lambda: not processes_of(here), what="the end of the server and its child")


def test_nothing_is_left_of_a_server_when_cru_is_killed(tmp_path: Path) -> None:
    with server(
        [Reply(calls=[Call("mcp_search", {})]), Reply(calls=[Call("mcp_small_child", {})]), Reply("done", delay=60)]
    ) as model:
        here = home(tmp_path, url=model.url, config=ALLOW + stdio("small", "stubborn"))
        with start("go", home=here) as run:
            model.wait(3)
            assert len(processes_of(here)) >= 2, "the server and its child run"
            os.kill(run.pid, signal.SIGKILL)
            wait_until(lambda: not processes_of(here), what="the end of the server and its child")


def test_a_project_that_is_not_trusted_starts_no_server(tmp_path: Path) -> None:
    count = tmp_path / "count"
    with server([Reply("done")]) as model:
        here = home(tmp_path, url=model.url)
        (here.project / ".cru").mkdir()
        (here.project / ".cru" / "config.toml").write_text(stdio("small", f"count={count}"))
        done = cru("go", home=here)
    assert "`mcp` is ignored: this project is not trusted" in done.err
    assert not count.exists() and "mcp_search" not in tools_of(model.requests[0])


def test_the_command_line_switches_a_server_off(tmp_path: Path) -> None:
    with server([Reply("done")]) as model:
        here = home(tmp_path, url=model.url, config=stdio())
        done = cru("-s", "mcp.servers.small.enabled=false", "go", home=here)
    assert done.code == 0 and "mcp_search" not in tools_of(model.requests[0]), done


@pytest.mark.slow
def test_too_many_tools_are_searched_for(tmp_path: Path) -> None:
    config = "context_window_limit = 8000\n" + stdio("small", "many=40")
    steps = [Reply(calls=[Call("mcp_search", {"query": "number 7 many"})]), Reply("one")]
    with server(steps) as model:
        here = home(tmp_path, url=model.url, config=config + "[permissions]\nallow = []\n")
        cru("mcp", "test", "small", home=here)
        cru("go", home=here)
    first, second = (tools_of(request) for request in model.requests)
    assert "mcp_search" in first and not [name for name in first if name.startswith("mcp_small")]
    assert "mcp_small_many_7" in second and len(second) <= len(first) + 10
