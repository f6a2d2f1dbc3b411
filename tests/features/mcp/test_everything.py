"""The protocol's own example server, driven whole. `bench/install_peers.sh everything` gets it from npm."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.features.mcp.test_session import results
from tests.kit import Call, HomeDir, Reply, cru, home, server

BENCH = Path(os.environ.get("BENCH_HOME") or Path.home() / ".cache" / "cru-bench")
PROGRAM = (
    BENCH / "npm" / "everything" / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
)
NODE = shutil.which("node", path=os.pathsep.join((str(BENCH / "bin"), os.environ.get("PATH", ""))))
pytestmark = pytest.mark.skipif(
    NODE is None or not PROGRAM.exists(), reason="server-everything is not installed: bench/install_peers.sh everything"
)

CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "echo": ({"message": "hello"}, "Echo: hello"),
    "get-annotated-message": ({"messageType": "error", "includeImage": True}, "[image/png, "),
    "get-env": ({}, '"PATH"'),
    "get-resource-links": ({"count": 2}, "[resource demo://resource/dynamic/"),
    "get-resource-reference": ({"resourceType": "Blob", "resourceId": 2}, "demo://resource/dynamic/blob/2"),
    "get-structured-content": ({"location": "Chicago"}, '"conditions"'),
    "get-sum": ({"a": 2, "b": 3}, "5"),
    "get-tiny-image": ({}, "saved in "),
    "gzip-file-as-resource": (
        {"name": "x.gz", "data": "data:text/plain,hello", "outputType": "resource"},
        "application/gzip of demo://",
    ),
    "toggle-simulated-logging": ({}, "logging"),
    "toggle-subscriber-updates": ({}, "updat"),
    "trigger-long-running-operation": ({"duration": 1, "steps": 2}, "Long running operation completed"),
    "get-roots-list": ({}, "project"),
    "trigger-elicitation-request": ({}, "decline"),
    "trigger-url-elicitation": ({"url": "https://example.com/x"}, "decline"),
    "trigger-sampling-request": ({"prompt": "say yes", "maxTokens": 5}, "a sample"),
    "simulate-research-query": ({"topic": "tides", "ambiguous": True}, "# Research Report: tides"),
}
PROMPTS = {
    "simple-prompt": "This is a simple prompt without arguments.",
    "args-prompt city=Kiel": "Kiel",
    "completable-prompt department=Sales name=David": "David",
    "resource-prompt resourceType=Text resourceId=1": "Resource 1: This is a plaintext resource",
}


def configured(tmp_path: Path, url: str) -> HomeDir:
    table = f"command = {json.dumps(NODE)}\nargs = {json.dumps([str(PROGRAM), 'stdio'])}\ncall_timeout = 60\n"
    return home(tmp_path, url=url, config=f'mode = "trust"\nfuel = 100\n[mcp.servers.everything]\n{table}')


def test_every_tool_is_called(tmp_path: Path) -> None:
    steps = [Reply(calls=[Call("mcp_search", {})])]
    for name, (args, _) in CALLS.items():
        steps.append(Reply(calls=[Call(f"mcp_everything_{name}", args)]))
        steps += [Reply("a sample")] if name == "trigger-sampling-request" else []
    with server([*steps, Reply("done")]) as model:
        here = configured(tmp_path, model.url)
        done = cru("go", home=here, timeout=120)
    first, *read = results(model.requests[-1])
    assert first.split() == [f"mcp_everything_{name}" for name in CALLS], first
    for (name, (_, says)), text in zip(CALLS.items(), read, strict=True):
        assert says in text, (name, text)
    assert done.code == 0 and "Traceback" not in done.err, done


def test_every_resource_and_prompt_is_read(tmp_path: Path) -> None:
    with server(lambda _: Reply("done")) as model:
        here = configured(tmp_path, model.url)
        listed = cru("/mcp resources everything", home=here).out.splitlines()
        uris = [line.split()[0].replace("{resourceId}", "1") for line in listed]
        cru(" ".join(uris), home=here)
        text = str(model.requests[-1].body["messages"][-1]["content"])
        assert len(uris) == 9 and all(f"--- RESOURCE {uri[1:]} ---" in text for uri in uris), (uris, text)
        for words, says in PROMPTS.items():
            cru(f"/everything:{words}", home=here)
            assert says in str(model.requests[-1].body["messages"][-1]["content"]), words
        known = cru("/mcp prompts everything", home=here).out
        assert all(f"/everything:{words.split()[0]}" in known for words in PROMPTS)
