"""The beginning of every hostile program (roads.py puts it before a behaviour of programs.py): its role, and what its lines may use.

The text @settings@ becomes a table in JSON: role, name, source, moment, answer, hook, home, project, pids.
"""

import glob
import json
import os
import resource  # noqa: F401  the lines of a behaviour use it, and the others
import shutil  # noqa: F401
import signal
import sys
import time  # noqa: F401

settings = json.loads(r"""@settings@""")
home, project, pids, role = (settings[key] for key in ("home", "project", "pids", "role"))
program = os.path.realpath(__file__)
context = next(iter(glob.glob(home + "/contexts/*")), home)
number = None
"""Of the call that an MCP server answers."""


def parent_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def find_cru():
    """The nearest process above that is no shell."""
    pid = os.getppid()
    while open(f"/proc/{pid}/comm").read().strip() in ("sh", "bash", "dash"):
        pid = parent_of(pid)
    if os.readlink(f"/proc/{pid}/cwd").split(" ")[0] != os.path.realpath(project):
        os._exit(99)  # it is not a run of this test: nobody else may be harmed
    return pid


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            found += map(int, file.read().split())
    return found


def write(data):
    while data:
        data = data[os.write(1, data) :]


def note(pid):
    with open(pids, "a") as file:
        file.write(f"{pid}\n")


def deaf():
    for each in range(1, 65):
        if each not in (9, 19, 32, 33):
            signal.signal(each, signal.SIG_IGN)


def unlink(path):
    if os.path.isdir(path) and not os.path.islink(path):
        os.rmdir(path)
    elif os.path.lexists(path):
        os.unlink(path)


def fill(value, text):
    """A template in which "*" stands for the text."""
    if isinstance(value, dict):
        return {key: fill(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, text) for item in value]
    return text if value == "*" else number if value == "#" else value


def render(text):
    template = settings["answer"]
    return text if template == "*" else json.dumps(fill(template, text)) + "\n"


def answer(text):
    write(render(text).encode("utf-8", "surrogatepass"))


part = render("half an answer, half an answer")[:30]
cru = find_cru()


def behave():
    exec(compile(settings["source"], "behaviour", "exec"), globals())


def answer_schema():
    name = os.path.basename(program)
    hooks = [settings["hook"]] if settings.get("hook") else []
    print(
        json.dumps(
            {"name": name, "description": "works", "parameters": {"type": "object", "properties": {}}, "hooks": hooks}
        )
    )


def serve():
    """An MCP server on its standard streams, honest but for the moment."""
    global number
    replies = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "x", "version": "1"},
        },
        "tools/list": {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "worked"}]},
    }
    for line in sys.stdin:
        message = json.loads(line)
        number, method = message.get("id"), message.get("method")
        if method == settings["moment"]:
            behave()
        elif number is not None:
            reply = (
                {"result": replies[method]} if method in replies else {"error": {"code": -32601, "message": "unknown"}}
            )
            print(json.dumps({"jsonrpc": "2.0", "id": number, **reply}), flush=True)


if role == "server":
    serve()
elif role == "program" and sys.argv[1:] == ["--schema"] and settings["moment"] != "schema":
    answer_schema()
else:
    if "closes" not in settings["name"]:
        sys.stdin.buffer.read()
    behave()
