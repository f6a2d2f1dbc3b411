"""Every format there and back, and what does not fit."""

from __future__ import annotations

from json import loads
from tomllib import loads as parse_toml

from tests.kit import Call, Reply
from tests.programs.stage import Stage
from yaml import safe_load

TOML = 'tags = ["a", "b"]\n\n[server]\nport = 8080\n'
CALLS = [
    Call("translate", {"path": "a.toml", "to": "json"}),
    Call("translate", {"path": "a.toml", "to": "pretty"}),
    Call("translate", {"path": "a.toml", "to": "yaml"}),
    Call("translate", {"path": "b.json", "to": "toml"}),
    Call("translate", {"path": "a.toml", "to": "toon"}),
    Call("translate", {"path": "a.toml", "to": "xml"}),
    Call("look", {"path": "b.json", "filter": ".server.tls"}),
    Call("look", {"path": "b.json", "filter": ".nothing"}),
    Call("join", {"base": "b.json", "over": "a.toml"}),
    Call("join", {"base": "a.toml", "over": "b.json"}),
    Call("report", {"note": '{"author": null}'}),
]


def play(stage: Stage) -> None:
    (stage.folder / "a.toml").write_text(TOML)
    (stage.folder / "b.json").write_text('{"server": {"tls": true, "port": 9000}}')
    turn = stage.turn([Reply(calls=CALLS), Reply("done")], own="least = 8888")
    json, pretty, yaml, toml, toon, xml, tls, nothing, low, joined, report = turn.results
    value = {"tags": ["a", "b"], "server": {"port": 8080}}
    assert (loads(json), "\n" in json) == (value, False)
    assert (loads(pretty), '\n  "tags": [\n' in pretty) == (value, True)
    assert (safe_load(yaml), "server:\n  port: 8080" in yaml) == (value, True)
    assert parse_toml(toml) == {"server": {"tls": True, "port": 9000}}
    assert sorted(toon.splitlines()) == ["  port: 8080", "server:", "tags[2]: a,b"]
    assert "one of" in xml
    assert (tls, nothing) == ("true", '{"found":null}')
    first, *merged, last = joined.splitlines()
    assert (first, last) == ("port 9000", '{ "a", "b" }')
    assert parse_toml("\n".join(merged)) == {"tags": ["a", "b"], "server": {"port": 9000, "tls": True}}
    assert "must be >= 8888, got 8080" in low
    assert loads(report) == {"files": [], "author": None, "size": 16}
