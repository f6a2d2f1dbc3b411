"""`cru mcp serve` on standard input and output, with the SDK's client."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from tests.faces.mcp_server.serving import ERAS, Caller, Person, use
from tests.kit import HomeDir, cru, start, wait_until
from tests.kit.processes import is_running
from tests.kit.run import program

USUAL = {"read", "ls", "glob", "grep", "write", "edit", "list_contexts", "read_context", "send_prompt"}


HELLO = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    b'"clientInfo":{"name":"x","version":"1"}}}\n'
)
INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}\n'


def call_line(name: str, **args: str) -> str:
    """The message that calls a tool, with the id 2."""
    params = {"name": name, "arguments": args}
    return json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}) + "\n"


@pytest.mark.slow
@pytest.mark.parametrize("era", ERAS)
def test_a_client_reads_and_writes_with_the_leave_of_its_person(here: HomeDir, era: str) -> None:
    person = Person("once", "no not today", "decline", "session")

    async def work(call: Caller) -> None:
        assert set(await call.names()) == USUAL
        assert await call("read", file_path="a.txt") == "     1\thello"
        assert (await call("write", file_path="b.txt", content="x")).startswith("Created b.txt")
        assert await call("write", file_path="c.txt", content="x") == "ERROR The user refused: not today"
        assert "closed without leave" in await call("write", file_path="c.txt", content="x")
        assert (await call("write", file_path="d.txt", content="1")).startswith("Created d.txt")
        assert (await call("write", file_path="d.txt", content="2")).startswith("Replaced d.txt")

    use(here, work, person=person, era=era, started=True)
    assert [q.message.splitlines()[0] for q in person.questions] == [
        "write: b.txt",
        *["write: c.txt"] * 2,
        "write: d.txt",
    ]
    assert "x" in person.questions[0].message and "ask mode asks before changing files" in person.questions[0].message
    assert (here.project / "b.txt").read_text() == "x" and not (here.project / "c.txt").exists()
    assert (here.project / "d.txt").read_text() == "2"
    assert not (here.cru / "grants.json").exists()


@pytest.mark.parametrize("era", ERAS)
def test_a_client_with_nobody_to_ask_is_refused_and_told_why(here: HomeDir, era: str) -> None:
    async def work(call: Caller) -> None:
        text = await call("write", file_path="b.txt", content="x")
        assert text.startswith(
            "ERROR Not allowed by policy: ask mode asks before changing files; nobody can be asked here"
        )
        assert "nobody can be asked" in await call("send_prompt", context="w", prompt="hi")

    use(here, work, era=era)
    assert not (here.project / "b.txt").exists() and not here.context("w").exists()


def test_nothing_outside_of_the_project_is_reached_whatever_is_allowed(here: HomeDir) -> None:
    secret = here.path / "secret.txt"
    secret.write_text("secret")
    (here.project / "link").symlink_to(secret)
    (here.project / "folder").symlink_to(here.path)
    with (here.cru / "config.toml").open("a") as config:
        config.write('[permissions]\nallow = ["read", "write", "ls", "grep", "glob"]\n')

    async def work(call: Caller) -> None:
        for path in (str(secret), "../home/secret.txt", "link", "folder/secret.txt", "~/secret.txt"):
            text = await call("read", file_path=path)
            assert text.startswith("ERROR Blocked by cru mcp serve") and "outside of the project" in text, path
            assert "outside" in await call("write", file_path=path, content="x")
        for path in ("..", "/", "folder", "~"):
            assert "outside" in await call("ls", path=path)
            assert "outside" in await call("grep", pattern="secret", path=path)
            assert "outside" in await call("glob", pattern="*", path=path)
        assert "ERROR" in await call("glob", pattern="../*")
        assert "secret.txt" not in await call("glob", pattern="**")
        assert await call("grep", pattern="secret") == "(no matches)"

        assert "not a path (embedded null byte)" in await call("read", file_path="a\0b")

    use(here, work, "-t")
    assert secret.read_text() == "secret"


def test_no_sub_agent_gets_out_through_the_links_of_its_copy(here: HomeDir) -> None:
    """What the project has removed meanwhile is in a worktree again."""
    (here.path / ".keys").mkdir()
    (here.path / ".keys" / "creds").write_text("AKIASECRET")
    (here.project / ".git").rmdir()
    (here.project / "lnk").symlink_to(here.path / ".keys")
    (here.project / "below.txt").write_text(
        'call: read {"file_path": "lnk/creds"}\ncall: write {"file_path": "lnk/new", "content": "x"}\n'
        f'call: read {{"file_path": "{here.path}/.keys/creds"}}\n'
        'call: write {"file_path": "own.txt", "content": "x"}\ncall: read {"file_path": "a.txt"}\n---\ntext: done\n'
    )
    for words in (("init", "-q"), ("add", "-A"), ("-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x")):
        subprocess.run(["git", *words], cwd=here.project, check=True)
    (here.project / "lnk").unlink()

    async def work(call: Caller) -> None:
        more = {"agent": "general", "prompt": "x", "description": "d", "isolation": "worktree"}
        assert "done" in await call("task", model="scripted:below.txt", **more)

    use(here, work, "-t", "--tools", "task")
    [log] = here.cru.glob("contexts/*/tasks/*/context.jsonl")
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    told = [entry["content"] for entry in entries if entry["entry_type"] == "tool_result"]
    assert ["outside of the project" in text for text in told] == [True, True, True, False, False]
    assert told[3].startswith("Created own.txt") and "hello" in told[4] and "AKIASECRET" not in str(told)
    assert not (here.path / ".keys" / "new").exists() and not (here.project / "own.txt").exists()


def test_rules_and_hooks_judge_calls_of_clients(here: HomeDir) -> None:
    with (here.cru / "config.toml").open("a") as config:
        config.write('[permissions]\ndeny = ["read:a.txt"]\n')
    plugins = here.cru / "plugins"
    plugins.mkdir()
    (plugins / "guard.lua").write_text(
        'cru.on("tool:before_call", function(ctx, event)\n'
        '  if event.args.file_path == "b.txt" then return {cancel = true, reason = "not b"} end\n'
        '  if event.args.file_path == "c.txt" then return {args = {file_path = "/etc/passwd"}} end\nend)\n'
    )

    async def work(call: Caller) -> None:
        assert (await call("read", file_path="a.txt")).startswith("ERROR Not allowed by policy")
        assert "not b" in await call("read", file_path="b.txt")
        assert "root:" not in await call("read", file_path="c.txt")

    use(here, work, "-t")


def test_prompts_go_to_conversations_that_can_be_read(here: HomeDir) -> None:
    person = Person("once")

    async def work(call: Caller) -> None:
        assert await call("send_prompt", context="work", prompt="/help is no command here") == "fine"
        assert {"name": "work", "busy": False} in json.loads(await call("list_contexts"))
        read = json.loads(await call("read_context", context_name="work"))
        assert [m["content"] for m in read["recent_messages"]] == ["/help is no command here", "fine"]
        assert "ERROR" in await call("read_context", context_name="nobody")
        assert "ERROR" in await call("read_context", context_name="../etc")

    use(here, work, person=person)
    assert "send_prompt: work" in person.questions[0].message and "/help is no command" in person.questions[0].message
    assert [e["content"] for e in here.log("work") if e["entry_type"] == "message"][-1] == "fine"


def test_the_agent_that_gets_a_prompt_asks_at_the_client_too(here: HomeDir) -> None:
    (here.path / "model.txt").write_text(
        'call: write {"file_path": "by-agent.txt", "content": "x"}\n---\ntext: written\n'
    )
    person = Person("once", "once")

    async def work(call: Caller) -> None:
        assert await call("send_prompt", context="work", prompt="go") == "written"

    use(here, work, person=person, era="2026-07-28")
    assert [q.message.splitlines()[0] for q in person.questions] == ["send_prompt: work", "write: by-agent.txt"]
    assert (here.project / "by-agent.txt").read_text() == "x"


def test_a_bad_call_is_told(here: HomeDir) -> None:
    async def work(call: Caller) -> None:
        assert (await call("bash", command="ls")).startswith("ERROR there is no tool 'bash' here; there are: ")
        assert "`file_path`" in await call("read")
        assert "ERROR" in await call("send_prompt", context="../x", prompt="hi")
        assert "ERROR" in await call("send_prompt", context="", prompt="hi")

    use(here, work, "-t")


def test_other_tools_are_served_if_they_are_named(here: HomeDir) -> None:
    async def work(call: Caller) -> None:
        assert set(await call.names()) == {"read", "bash"}
        assert (await call("bash", command="echo out; echo err >&2")).startswith("out")
        assert "there is no tool 'write'" in await call("write", file_path="x", content="")

    use(here, work, "-t", "--tools", "read,ba*")


def test_what_a_plugin_prints_does_not_reach_the_wire(here: HomeDir) -> None:
    (here.cru / "plugins").mkdir()
    (here.cru / "plugins" / "loud.py").write_text(
        'import cru, os\nprint("printed")\nos.write(1, b"written\\n")\n'
        '@cru.on("tool:before_call")\ndef loud(ctx, event):\n    print("again")\n'
    )
    with start("mcp", "serve", home=here, stdin=True) as run:
        run.write(HELLO.decode() + INITIALIZED + call_line("read", file_path="a.txt"))
        run.wait_for("hello")
        run.end_input()
        done = run.wait()
    assert [json.loads(line)["id"] for line in done.out.splitlines()] == [1, 2]
    assert all(word in done.err for word in ("printed", "written", "again"))


@pytest.mark.slow
def test_lines_that_are_no_messages_do_not_end_it(here: HomeDir) -> None:
    with subprocess.Popen(
        [program(), "mcp", "serve"], env=here.env, cwd=here.project,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as run:  # fmt: skip
        assert run.stdin is not None and run.stdout is not None and run.stderr is not None
        for line in (
            b"garbage\n",
            b"\n",
            b"\xff\xfe\n",
            b"[]\n",
            b'{"jsonrpc":"1.0"}\n',
            b"[" * 100_000 + b"\n",
            HELLO,
        ):
            run.stdin.write(line)
        run.stdin.flush()
        refused = [json.loads(run.stdout.readline())["error"]["code"] for _ in range(3)]
        assert json.loads(run.stdout.readline())["result"]["serverInfo"]["name"] == "cru" and refused == [-32700] * 3
        run.stdin.close()
        assert run.wait(30) == 0
        assert b"Traceback" not in run.stderr.read()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once(here: HomeDir, number: int) -> None:
    with start("mcp", "serve", home=here, stdin=True) as run:
        run.write(HELLO.decode())
        run.wait_for('"serverInfo"')
        run.signal(number)
        done = run.wait()
    assert done.code in (128 + number, -number) and "did not come back" not in done.err


def test_a_client_that_goes_ends_the_turn_that_it_asked_for(here: HomeDir) -> None:
    (here.path / "model.txt").write_text("delay: 600s\ntext: too late\n")
    with start("mcp", "serve", "-t", home=here, stdin=True) as run:
        run.write(HELLO.decode())
        run.wait_for('"serverInfo"')
        run.write(INITIALIZED + call_line("send_prompt", context="work", prompt="go"))
        wait_until(lambda: any(e["content"] == "go" for e in here.log("work")))
        run.end_input()
        assert run.wait().code == 0
    [ended] = [e for e in here.log("work") if e["entry_type"] == "leg_ended"]
    assert ended["metadata"]["cause"] == "interrupted"


def test_a_client_that_cancels_ends_the_command_that_it_asked_for(here: HomeDir) -> None:
    with start("mcp", "serve", "-t", "--tools", "bash", home=here, stdin=True) as run:
        run.write(HELLO.decode() + INITIALIZED + call_line("bash", command="echo $$ > pid; sleep 600"))
        wait_until(lambda: (here.project / "pid").exists() and (here.project / "pid").read_text().endswith("\n"))
        pid = int((here.project / "pid").read_text())
        assert is_running(pid)
        run.write('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}\n')
        wait_until(lambda: not is_running(pid))
        run.end_input()
        assert run.wait().code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--http", "x"), "--http needs a port"),
        (("--http", "99999"), "--http needs a port"),
        (("--http", "0.0.0.0:1"), "a token is needed"),
        (("--http", "example.org:1"), "a token is needed"),
        (("--token-file", "gone"), "go with --http"),
        (("--http", "1", "--token-file", "gone"), "gone: No such file"),
        (("--http", "1", "--token-file", "short"), "at least 16"),
        (("--http", "0.0.0.0:1", "--token-file", "token"), "--allow-host"),
        (("--mode", "nope"), "unknown mode"),
        (("--htpp", "1"), "does not take --htpp"),
    ],
)
def test_options_that_do_not_fit_are_told(here: HomeDir, words: tuple[str, ...], message: str) -> None:
    Path(here.project / "short").write_text("abc")
    Path(here.project / "token").write_text("0123456789abcdef0123")
    done = cru("mcp", "serve", *words, home=here)
    assert done.code == 2 and message in done.err and "0123456789abcdef" not in done.err
