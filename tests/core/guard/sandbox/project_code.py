"""A project's hook, plugin and MCP server, each of which does what the model's call says; and what such code may try.

Placeholders are those of escapes.py; `{key}` is a file of cru's home.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

from msgspec import Struct
from tests.kit import Call, HomeDir, cru, trust_project
from tests.kit.scripts import python_word, shebang

PROJECT_ESCAPES = [
    "echo x > {out}/new",
    "rm -rf {out}",
    "echo x >> {home}/.profile",
    "mkdir -p {cru}/plugins && echo x > {cru}/plugins/a.lua",
    "echo x > {cru}/config.toml",
    "echo x > .git/hooks/pre-commit",
    "git config core.fsmonitor ./evil",
    "echo x > .envrc",
    "mkdir -p .vscode && echo x > .vscode/tasks.json",
    "cat {home}/.ssh/id_rsa {home}/.aws/credentials",
    "cat {cru}/keys.json",
    "cat /proc/{pid}/environ /proc/$PPID/environ /proc/*/environ | tr '\\0' '\\n'",
    "setsid -f sh -c 'sleep 987657; echo x > {out}/new' >/dev/null 2>&1",
    "exec 3<>/dev/tcp/127.0.0.1/{port} && echo x >&3",
    "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('\\0{abstract}'); s.sendall(b'x')\"",
    "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('{socket}'); s.sendall(b'x')\"",
    "unshare -Urm sh -c 'umount {home}/.ssh; cat {home}/.ssh/id_rsa'",
    "kill -9 {pid}; kill -9 $PPID; kill -9 -1",
]
"""What none of them may get done."""

RUN = """
def run(command):
    done = subprocess.run(["/bin/bash", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return f"<{done.stdout}{done.stderr}>"
"""
HOOK = f"""
import json, subprocess, sys
{RUN}
print(run(json.load(sys.stdin)["tool_input"]["command"]), file=sys.stderr)
sys.exit(2)
"""
PLUGIN = f"""{shebang("-IS")}import json, subprocess, sys
{RUN}
if sys.argv[1:] == ["--schema"]:
    print(json.dumps({{"name": "run", "description": "runs", "parameters": {{"type": "object"}}}}))
else:
    print(run(json.load(sys.stdin)["command"]))
"""
SERVER = f"""
import json, subprocess, sys
{RUN}
TOOL = {{"name": "run", "description": "runs", "inputSchema": {{"type": "object"}}}}
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {{}}
    if method == "initialize":
        about = {{"capabilities": {{"tools": {{}}}}, "serverInfo": {{"name": "s", "version": "1"}}}}
        result = {{"protocolVersion": params["protocolVersion"], **about}}
    elif method == "tools/list":
        result = {{"tools": [TOOL]}}
    elif method == "tools/call":
        result = {{"content": [{{"type": "text", "text": run(params["arguments"]["command"])}}]}}
    else:
        result = {{}}
    if "id" in message:
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
"""


class ProjectCode(Struct, frozen=True):
    """One kind of code that a project brings.

    install: puts it into a project, and trusts it
    call: a call that has it run a command
    """

    install: Callable[[HomeDir], None]
    call: Callable[[str], Call]


def _install_hook(here: HomeDir) -> None:
    (here.project / "hook.py").write_text(HOOK)
    command = f"{python_word()} -IS $CLAUDE_PROJECT_DIR/hook.py"
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}]}
    (here.project / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))


def _install_plugin(here: HomeDir) -> None:
    program = here.project / ".cru" / "plugins" / "runner"
    program.parent.mkdir(parents=True)
    program.write_text(PLUGIN)
    program.chmod(0o755)
    trust_project(here)


def _install_server(here: HomeDir) -> None:
    (here.project / "server.py").write_text(SERVER)
    server = {"command": sys.executable, "args": ["-IS", "server.py"]}
    (here.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"own": server}}))
    done = cru("mcp", "accept", "own", home=here)
    assert done.code == 0, done.err


KINDS = {
    "hook": ProjectCode(_install_hook, lambda command: Call("bash", {"command": command})),
    "plugin": ProjectCode(_install_plugin, lambda command: Call("run", {"command": command})),
    "server": ProjectCode(_install_server, lambda command: Call("mcp_own_run", {"command": command})),
}


def write_user_hook(here: HomeDir, command: str) -> None:
    """A hook of the person's own, in the file of cru."""
    file = here.cru / "config.toml"
    hook = f"[[hooks.entries]]\nevent = 'tool:before_call'\ncommand = {json.dumps(command)}\n"
    file.write_text(file.read_text() + hook)


def read_results(here: HomeDir, context: str) -> list[str]:
    """In the order of the calls, some of which run at the same time."""
    log = here.log(context)
    results = {entry["tool_call_id"]: str(entry["content"]) for entry in log if entry["entry_type"] == "tool_result"}
    return [results[entry["tool_call_id"]] for entry in log if entry["entry_type"] == "tool_call"]
