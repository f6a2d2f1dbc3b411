"""Keys of other programs: on which roads they reach a child, and what is told where they do not. One run for all rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import Struct
from tests.kit import Call, Done, HomeDir, Received, Reply, cru, home, pty, server, trust_project

from cru.core.tools.protocol import HIDDEN_KEY

KEYS = (
    "OPENROUTER_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "CRU_API_KEY", "GROQ_API_KEY", "GEMINI_API_KEY", "MISTRAL_API_KEY",
    "SOME_NEW_API_KEY", "WATSONX_APIKEY", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK",
    "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "HF_TOKEN", "NPM_TOKEN", "NODE_AUTH_TOKEN", "CLOUDFLARE_API_TOKEN", "ANTHROPIC_AUTH_TOKEN",
    "SLACK_BOT_TOKEN", "DIGITALOCEAN_ACCESS_TOKEN", "SENTRY_AUTH_TOKEN", "TWINE_PASSWORD", "VAULT_TOKEN", "MINIO_SECRET_ACCESS_KEY",
    "DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "STRIPE_SECRET_KEY", "SECRET_KEY", "JWT_SECRET", "OPENAI_KEY", "TF_TOKEN_app_terraform_io",
)  # fmt: skip
OWN = KEYS[:4]
SECRET = "the-key-of-cru-itself-1234"
PLAIN = ("EDITOR", "API_KEY_FILE", "MY_TOKENS", "SSH_AUTH_SOCK", "DATABASE_URL")
VALUES = {name: f"value-of-{name.lower()}" for name in (*KEYS, *PLAIN)}
PROGRAM = """#!/bin/sh
if [ "$1" = --schema ]; then
  echo '{"name": "NAME", "description": "shows what it gets", "parameters": {"type": "object", "properties": {}}}'
else
  env; false
fi
"""
PLUGIN = 'cru.on("session:started", function() cru.shell.exec("sh", {"-c", "env >plugin.txt"}) end)\n'
# road: whether keys of other programs come along
ROADS = {
    "bash": False, "background": False, "agent": False, "program": False, "program of the project": False, "hook of the project": False,
    "server of the project": False, "server": True, "hook": True, "plugin": True, "by hand": True,
}  # fmt: skip


class Ran(Struct):
    """What each child of the run has seen, by road."""

    done: Done
    seen: dict[str, str]
    results: dict[str, str]


def _program(folder: Path, name: str, command: str = "env; false") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(PROGRAM.replace("NAME", name).replace("env; false", command))
    (folder / name).chmod(0o755)


def _server(name: str, file: Path) -> str:
    return f'[mcp.servers.{name}]\ncommand = "/bin/sh"\nargs = ["-c", "env >{file}; exec cat"]\nstart_timeout = 0.2\n'


def _answer(request: Received) -> Reply:
    messages = request.body["messages"]
    if any(message["role"] == "tool" for message in messages):
        return Reply("done")
    if "sub-agent's work" in str(messages[-1]["content"]):
        return Reply(calls=[Call("bash", {"command": "env >agent.txt; ls $GITHUB_TOKEN"})])
    calls = [
        Call("bash", {"command": "env"}, "bash"),
        Call("bash", {"command": "env >background.txt; exit 3", "background": True}, "background"),
        Call("task", {"agent": "general", "prompt": "the sub-agent's work"}, "agent"),
        Call("shown", {}, "program"),
        Call("shown_by_project", {}, "program of the project"),
        Call("bash", {"command": "curl -H \"x: $GROQ_API_KEY\" 127.0.0.1:1 >x; cat x"}, "named"),
        Call("bash", {"command": "echo use NPM_TOKEN or NODE_AUTH_TOKEN please; false"}, "asked for"),
        Call("bash", {"command": "gh() { false; }; gh issue list"}, "program that reads one"),
        Call("bash", {"command": "false"}, "failed"),
        Call("bash", {"command": "echo $EDITOR GITHUB_TOKENS"}, "other words"),
    ]  # fmt: skip
    return Reply(calls=calls)


def _home(folder: Path, url: str) -> HomeDir:
    hook = '[[hooks.entries]]\nevent = "session:started"\ncommand = "env >own_hook.txt"\n'
    here = home(folder, url=url, config="[mcp]\n" + _server("own", folder / "server.txt") + hook)
    (here.project / ".cru").mkdir()
    (here.project / ".cru/config.toml").write_text(_server("theirs", folder / "server_of_project.txt"))
    _program(here.cru / "plugins", "shown")
    _program(here.project / ".cru/plugins", "shown_by_project")
    (here.cru / "plugins/env.lua").write_text(PLUGIN)
    trust_project(here)
    entries = [{"event": "session:started", "command": "env >project_hook.txt"}]
    (here.project / ".cru/hooks.json").write_text(json.dumps({"hooks": entries}))
    return here


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("keys")
    with server(_answer) as model:
        here = _home(folder, model.url)
        done = cru("-t", "--hooks=all", "go", home=here, env=VALUES)
    results = {str(e["tool_call_id"]): str(e["content"]) for e in here.log() if e["entry_type"] == "tool_result"}
    files = {
        "background": "background.txt", "agent": "agent.txt", "hook of the project": "project_hook.txt", "hook": "own_hook.txt",
        "plugin": "plugin.txt", "server": "../server.txt", "server of the project": "../server_of_project.txt",
    }  # fmt: skip
    seen = {road: (here.project / file).read_text() for road, file in files.items()}
    seen |= {road: results[road] for road in ("bash", "program", "program of the project")}
    seen["by hand"] = cru("-P", "bash", '{"command": "env"}', home=here, env=VALUES).out
    return Ran(done, seen, results)


@pytest.mark.parametrize("name", (*KEYS, *PLAIN))
def test_what_the_model_runs_gets_no_keys(ran: Ran, name: str) -> None:
    roads = [road for road, gets in ROADS.items() if not gets]
    assert [road for road in roads if (f"{name}={VALUES[name]}" in ran.seen[road]) is (name in KEYS)] == []


@pytest.mark.parametrize("road", ROADS)
def test_who_gets_the_keys_of_other_programs(ran: Ran, road: str) -> None:
    others = [name for name in KEYS if name not in OWN]
    got = [name for name in others if f"{name}={VALUES[name]}" in ran.seen[road]]
    assert got == (others if ROADS[road] else []) and f"EDITOR={VALUES['EDITOR']}" in ran.seen[road]


TOLD = {
    "named": ("GROQ_API_KEY",), "asked for": ("NODE_AUTH_TOKEN", "NPM_TOKEN"), "program that reads one": ("GH_TOKEN", "GITHUB_TOKEN"),
    "failed": (), "other words": (), "bash": (),
}  # fmt: skip


@pytest.mark.parametrize("call", TOLD)
def test_the_model_is_told_where_a_key_may_be_missed(ran: Ran, call: str) -> None:
    listed = ", ".join(f'"{name}"' for name in TOLD[call])
    text = f"[{', '.join(TOLD[call])}: set where cru was started, but withheld from what you run"
    assert (text in ran.results[call] and f"`tools.env_pass = [{listed}]`" in ran.results[call]) is bool(TOLD[call])
    assert bool(TOLD[call]) or "withheld" not in ran.results[call]


def test_the_end_of_a_command_in_the_background_tells_it_too(tmp_path: Path) -> None:
    def answer(request: Received) -> Reply:
        last = request.body["messages"][-1]
        if last["role"] == "tool":
            task = str(last["content"]).partition("as task ")[2].partition(",")[0]
            return Reply(calls=[Call("task_output", {"id": task, "wait": 30})]) if task else Reply("done")
        return Reply(calls=[Call("bash", {"command": "echo $NPM_TOKEN; false", "background": True})])

    with server(answer) as model:
        here = home(tmp_path, url=model.url)
        done = cru("-t", "go", home=here, env={"NPM_TOKEN": "npm_123456789"})
        sent = b"".join(request.raw for request in model.requests)
    assert b"[NPM_TOKEN: set where cru was started, but withheld from what you run" in sent, (done, sent[-600:])
    assert "the model's commands do not get NPM_TOKEN" in done.err and b"npm_123456789" not in sent


def test_the_person_is_told_of_each_key_once(ran: Ran) -> None:
    lines = [line for line in ran.done.err.splitlines() if "the model's commands do not get" in line]
    told = [name for line in lines for name in line.partition("not get ")[2].partition(", since")[0].split(", ")]
    assert sorted(told) == ["GH_TOKEN", "GITHUB_TOKEN", "GROQ_API_KEY", "NODE_AUTH_TOKEN", "NPM_TOKEN"]
    assert all("`!command`" in line and "env_pass" in line for line in lines)


@pytest.mark.parametrize(
    ("passed", "names"),
    [
        (["GITHUB_TOKEN"], {"GITHUB_TOKEN"}), (["AWS_*"], {name for name in KEYS if name.startswith("AWS_")}), ([], set()),
        (["*"], set(KEYS) - set(OWN)), (["*", "OPENAI_API_KEY"], set(KEYS) - set(OWN) | {"OPENAI_API_KEY"}), (["github_token"], set()),
        (["CRU_API_KEY", "*_API_KEY"], {name for name in KEYS if name.endswith("_API_KEY")} - set(OWN) | {"CRU_API_KEY"}),
    ],
)  # fmt: skip
def test_what_the_person_passes_by_name(tmp_path: Path, passed: list[str], names: set[str]) -> None:
    with server([Reply(calls=[Call("bash", {"command": "env; false"})]), Reply("done")]) as model:
        here = home(tmp_path, url=model.url, config=f"[tools]\nenv_pass = {json.dumps(passed)}\n")
        cru("-t", "--debug", "all", "go", home=here, env=VALUES)
    [result] = [str(e["content"]) for e in here.log() if e["entry_type"] == "tool_result"]
    shown = {name: HIDDEN_KEY if name in OWN else VALUES[name] for name in KEYS}
    assert {name for name in KEYS if f"{name}={shown[name]}" in result} == names
    assert "withheld" not in result
    records = [path for path in here.context().rglob("*") if path.is_file() and path.name != "context.jsonl"]
    assert [path.name for path in records if b"value-of-github" in path.read_bytes()] == []


@pytest.mark.sample(1)
@pytest.mark.parametrize("key", ["api_key", "variable", "kept"])
def test_no_result_shows_a_key_of_cru_itself(tmp_path: Path, key: str) -> None:
    """Neither of a command, nor of a file, a search, a sub-agent, or a plugin that is a program."""
    look = Call("bash", {"command": "cat key.txt; cat key.txt >&2; false"})
    calls = [
        look,
        Call("read", {"file_path": "key.txt"}),
        Call("grep", {"pattern": "mine", "path": "."}),
        Call("show", {}),
        Call("task", {"description": "look", "prompt": "look", "agent": "general"}),
    ]

    def work(request: Received) -> Reply:
        last = request.body["messages"][-1]
        if last["role"] == "user":
            return Reply(calls=[look] if "look" in str(last["content"]) else calls)
        return Reply("done")

    with server(work) as model:
        here = home(tmp_path)
        here.configure(f'api_key = "{SECRET if key == "api_key" else ""}"\n', url=model.url)
        if key == "kept":
            cru("login", model.url, "--file", "--no-check", home=here, input=SECRET)
        _program(here.cru / "plugins", "show", "cat key.txt")
        (here.project / "key.txt").write_text(f"mine is {SECRET}\n")
        done = cru("-t", "go", home=here, env={"CRU_API_KEY": SECRET} if key == "variable" else {})
    assert done.code == 0, done
    results = [str(entry["content"]) for entry in here.log() if entry["entry_type"] == "tool_result"]
    assert [HIDDEN_KEY in result for result in results[:4]] == [True] * 4, results
    assert len(model.requests) == 4 and not [request for request in model.requests if SECRET.encode() in request.raw]
    assert not [path for path in here.context().rglob("*.jsonl") if SECRET in path.read_text()]


WIDENED = {
    "the project's file": ("-t",), "the project's file, to be trusted": ("-t",), "the context's file": ("-t",),
    "a request": ("-t", "--json"), "the environment": ("-t",),
}  # fmt: skip


@pytest.mark.parametrize("layer", WIDENED)
def test_nobody_but_the_person_widens_it(tmp_path: Path, layer: str) -> None:
    setting, env = '[tools]\nenv_pass = ["*", "GITHUB_TOKEN"]\n', {"GITHUB_TOKEN": "ghp_123456789"}
    with server([Reply(calls=[Call("bash", {"command": "env >seen.txt"})]), Reply("done")]) as model:
        here = home(tmp_path, url=model.url)
        files = {
            "the project's file": here.project / ".cru/config.toml",
            "the context's file": here.context() / "local.toml",
        }
        if file := files.get(layer.partition(",")[0]):
            file.parent.mkdir(parents=True)
            file.write_text(setting)
        if layer.endswith("to be trusted"):
            assert "`tools` is ignored: it counts only in ~/.cru/config.toml" in trust_project(here).out
        if layer == "the environment":
            env |= {"CRU_TOOLS": "GITHUB_TOKEN", "CRU_ENV_PASS": "GITHUB_TOKEN"}
        request = json.dumps({"prompt": "go", "config": {"tools": {"env_pass": ["GITHUB_TOKEN"]}}})
        done = cru(*WIDENED[layer], *([] if layer == "a request" else ["go"]), home=here, env=env, input=request)
    seen = here.project / "seen.txt"
    assert not seen.exists() or "ghp_123456789" not in seen.read_text()
    assert "tools" in done.err + done.out, done


def test_a_command_of_ones_own_in_the_chat_gets_them(tmp_path: Path) -> None:
    with server([Reply("answer")]) as model:
        here = home(tmp_path, url=model.url)
        with pty(home=here, env={"GITHUB_TOKEN": "ghp_123456789"}) as terminal:
            terminal.expect("> ")
            terminal.line("!test $GITHUB_TOKEN = ghp_123456789 && echo it is there")
            terminal.expect("it is there\n")
            assert terminal.eof() == 0


@pytest.mark.parametrize(
    ("whose", "typed", "gets"), [("own", True, True), ("own", False, False), ("project", True, False)]
)
def test_commands_of_a_file_get_them_if_it_is_the_persons_and_typed(
    tmp_path: Path, whose: str, typed: bool, gets: bool
) -> None:
    """What the model loads as a skill, with arguments of its choice, is the model's."""
    text = "---\nname: look\ndescription: looks\nallowed-tools: Bash(env)\n---\n!`env`\n"
    with server([Reply("done")] if typed else [Reply(calls=[Call("skill", {"name": "look"})]), Reply("done")]) as model:
        here = home(tmp_path, url=model.url)
        file = (here.path if whose == "own" else here.project) / ".claude/skills/look/SKILL.md"
        file.parent.mkdir(parents=True)
        file.write_text(text)
        if whose == "project":
            trust_project(here)
        done = cru(
            "-t", "/look" if typed else "go", home=here, env={"GITHUB_TOKEN": "ghp_123456789", "PLAIN": "it ran"}
        )
        sent = b"".join(request.raw for request in model.requests)
    assert done.code == 0 and b"PLAIN=it ran" in sent, done
    assert (b"ghp_123456789" in sent) is gets


@pytest.mark.slow
def test_the_doctor_lists_them(tmp_path: Path) -> None:
    here = home(tmp_path, config='[tools]\nenv_pass = ["HF_TOKEN"]\n')
    out = cru("doctor", "--offline", home=here, env={"GITHUB_TOKEN": "ghp_123456789", "HF_TOKEN": "hf_1234567"}).out
    [line] = [line for line in out.splitlines() if "do not get" in line]
    assert "the model's commands do not get GITHUB_TOKEN" in line and "env_pass" in line and "ghp_" not in out


def test_a_trusted_project_leaves_no_own_key_in_the_process(tmp_path: Path) -> None:
    """`[hooks] env_pass` of its file is ignored by hooks, and so it is by code that runs inside of cru."""
    with server([Reply("done")]) as model:
        here = home(tmp_path, url=model.url)
        (here.project / ".cru").mkdir()
        (here.project / ".cru/config.toml").write_text('[hooks]\nenv_pass = ["OPENAI_API_KEY"]\n')
        trust_project(here)
        (here.cru / "plugins").mkdir()
        (here.cru / "plugins/look.py").write_text(
            'import os, pathlib\npathlib.Path("seen.txt").write_text(os.environ.get("OPENAI_API_KEY", "none"))\n'
        )
        done = cru("go", home=here, env={"OPENAI_API_KEY": "sk-123456789"})
    assert (here.project / "seen.txt").read_text() == "none" and "`hooks.env_pass` is ignored" in done.err
