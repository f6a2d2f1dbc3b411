"""`cru.vault`, `cru.kiln`, `cru.search`, `cru.graph` and `cru.paths.kiln` on a real vault: the same from Lua and from Python."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.features.vault.support import write_notes
from tests.kit import HomeDir, cru, home

NOTES = {
    "Home.md": "# Home\nSee [[Retry policy]] and [[Nowhere]]. #start\n",
    "plans/Retry policy.md": "---\nstatus: open\nlevel: 3\n---\nTry again with a growing pause, see [[Backoff]].\n",
    "plans/Backoff.md": "Twice the pause each time.\n",
    "Alone.md": "Nobody knows me.\n",
}
# An expression of both languages → its value.
ANSWERS: dict[str, object] = {
    'cru.vault.outlinks("Home.md")': ["plans/Retry policy.md"],
    'cru.kiln.backlinks("plans/Backoff.md")': ["plans/Retry policy.md"],
    'cru.vault.neighbors("Home.md")': ["plans/Retry policy.md"],
    'cru.vault.neighbors("Home.md", 2)': ["plans/Backoff.md", "plans/Retry policy.md"],
    'cru.vault.neighbors("Home.md", 0)': [],
    'cru.vault.neighbors("none.md")': [],
    'cru.vault.get("none.md")': None,
    'cru.vault.get("../secret.md")': None,
    "cru.kiln.active": "notes",
    "cru.kiln.other": None,
    'cru.graph.fast_outlinks("Home.md")': ["plans/Retry policy.md"],
    'cru.graph.fast_backlinks("Home.md")': [],
    'cru.graph.fast_neighbors("plans/Backoff.md", 2)': ["Home.md", "plans/Retry policy.md"],
    "cru.graph.db_query('outlinks(\"Home\") | .[].title')": ["Retry policy"],
    "cru.graph.db_query(\"MATCH (a {title: 'Home'})-[*1..2]->(b) RETURN b.title AS t\")": [
        {"t": "Backoff"}, {"t": "Retry policy"},
    ],
    'cru.graph.db_find("none")': None,
    'cru.graph.db_outlinks("none")': [],
}  # fmt: skip
# An expression that gives notes → their paths.
PATHS = {
    "cru.vault.list()": sorted(NOTES),
    "cru.vault.list(2)": ["Alone.md", "Home.md"],
    'cru.vault.search("growing pause")': ["plans/Retry policy.md"],
    'cru.search("pause", {LIMIT})': ["plans/Backoff.md"],
    'cru.kiln.search("status:open")': ["plans/Retry policy.md"],
    'cru.vault.search("pause", {THRESHOLD})': [],
    "cru.graph.note_list(1)": ["Alone.md"],
    'cru.graph.db_outlinks("home")': ["plans/Retry policy.md"],
    'cru.graph.db_inlinks("Backoff")': ["plans/Retry policy.md"],
    'cru.graph.db_neighbors("Retry policy")': ["Home.md", "plans/Backoff.md"],
}
ERRORS = {
    'cru.vault.search("")': "Kiln error: there is nothing to look for",
    "cru.vault.search('\"open')": "Kiln error: the quotation mark at column 1",
    'cru.graph.db_query("outlinks(")': "Graph query error: the graph query",
    "cru.vault.create_note({NOTE})": "Kiln error: Home.md is there already",
    "cru.vault.create_note({OUT})": "Kiln error: not a note of this vault",
    "cru.vault.list(-1)": "cru.vault.list: limit must be",
    'cru.vault.search("x", {MODE})': 'cru.vault.search: mode must be "text", "semantic" or "hybrid"',
    "cru.vault.get(1)": "cru.vault.get: path must be a string",
}
TABLES: dict[str, dict[str, object]] = {
    "LIMIT": {"limit": 1}, "THRESHOLD": {"threshold": 1000}, "NOTE": {"path": "Home"}, "OUT": {"path": "../x"},
    "MODE": {"mode": "fast"},
}  # fmt: skip


@pytest.fixture
def here(tmp_path: Path) -> HomeDir:
    made = home(tmp_path)
    write_notes(made.path / "notes", NOTES)
    (tmp_path / "home" / "secret.md").write_text("out of the vault\n")
    (made.path / "model.txt").write_text("text: fine\n")
    made.configure(f'model = "scripted:{made.path}/model.txt"\n[vault]\npath = "~/notes"\n')
    return made


def lua(text: str) -> str:
    for name, table in TABLES.items():
        fields = ", ".join(f"{key} = {json.dumps(value)}" for key, value in table.items())
        text = text.replace(f"{{{name}}}", f"{{{fields}}}")
    return text


def python(text: str) -> str:
    for name, table in TABLES.items():
        text = text.replace(f"{{{name}}}", repr(table))
    return text if text.startswith(("cru.kiln.active", "cru.kiln.other")) else f"await {text}"


def results(here: HomeDir, language: str, expressions: list[str]) -> list[Any]:
    """(value) or {error} of each, as a plugin in that language gets it during `session:started`."""
    plugins = here.cru / "plugins"
    shutil.rmtree(plugins, ignore_errors=True)
    plugins.mkdir()
    out = here.project / "out.json"
    if language == "lua":
        rows = "\n".join(f"row(function() return {lua(each)} end)" for each in expressions)
        (plugins / "probe.lua").write_text(
            'cru.on("session:started", function()\nlocal rows = cru.json.array({})\n'
            "local function row(fn) local ok, value = pcall(fn)\n"
            "  if not ok then value = { error = tostring(value) } elseif value == nil then value = cru.json.null end\n"
            f'  rows[#rows + 1] = value end\n{rows}\ncru.fs.write("{out}", cru.json.encode(rows))\nend)\n'
        )
    else:
        rows = "\n".join(
            f"        try: rows.append({python(each)})\n        except Exception as e: rows.append({{'error': str(e)}})"
            for each in expressions
        )
        (plugins / "probe.py").write_text(
            "import json\nimport cru.core.api.python as cru\ndef setup(_):\n"
            f"    async def started(*_):\n        rows = []\n{rows}\n        open('{out}', 'w').write(json.dumps(rows))\n"
            "    cru.on('session:started', started)\n"
        )
    done = cru("hi", home=here)
    assert (done.code, done.out, done.err) == (0, "fine\n", ""), done
    return list(json.loads(out.read_text()))


@pytest.mark.sample(1)
@pytest.mark.parametrize("language", ["lua", "python"])
def test_every_name_answers_from_the_vault(here: HomeDir, language: str) -> None:
    expressions = [*ANSWERS, *PATHS, *ERRORS]
    answers = dict(zip(expressions, results(here, language, expressions), strict=True))
    assert {each: answers[each] for each in ANSWERS} == ANSWERS
    assert {each: [note["path"] for note in answers[each]] for each in PATHS} == PATHS
    for each, message in ERRORS.items():
        assert message in answers[each]["error"], (each, answers[each])


@pytest.mark.parametrize("language", ["lua", "python"])
def test_a_note_has_the_fields_of_the_contract(here: HomeDir, language: str) -> None:
    note, hit, found = results(
        here, language, ['cru.vault.get("plans/Retry policy.md")', 'cru.search("growing")', 'cru.graph.db_find("home")']
    )
    assert note.pop("updated_at").startswith("20") and len(note.pop("content_hash")) == 32
    assert note == {
        "path": "plans/Retry policy.md", "title": "Retry policy", "tags": [], "links_to": ["plans/Backoff.md"],
        "properties": {"status": "open", "level": 3}, "has_embedding": False,
    }  # fmt: skip
    assert hit[0]["snippet"] == "Try again with a growing pause, see [[Backoff]]." and hit[0]["score"] > 0
    assert (found["path"], found["tags"]) == ("Home.md", ["start"])


@pytest.mark.parametrize("language", ["lua", "python"])
def test_a_note_is_made_and_known_at_once(here: HomeDir, language: str) -> None:
    made = 'path = "ideas/New", body = "see [[Home]]", frontmatter = {status = "new"}'
    if language == "python":
        made = "'path': 'ideas/New', 'body': 'see [[Home]]', 'frontmatter': {'status': 'new'}"
    path, back = results(here, language, [f"cru.vault.create_note({{{made}}})", 'cru.vault.backlinks("Home.md")'])
    assert path == "ideas/New.md" and back == ["ideas/New.md"]
    assert (here.path / "notes" / "ideas" / "New.md").read_text() == "---\nstatus: new\n---\nsee [[Home]]"


def test_the_folder_of_notes_has_a_name(here: HomeDir) -> None:
    (here.cru / "plugins").mkdir()
    (here.cru / "plugins" / "p.lua").write_text(
        'cru.on("session:started", function() cru.toast(cru.paths.kiln()) end)\n'
    )
    assert cru("hi", home=here).err == f"cru: {here.path}/notes\n"


def test_a_vault_that_has_gone_is_an_error_and_the_run_goes_on(here: HomeDir) -> None:
    shutil.rmtree(here.path / "notes")
    (here.cru / "plugins").mkdir()
    (here.cru / "plugins" / "p.lua").write_text(
        'cru.on("session:started", function() local ok, why = pcall(cru.vault.list) cru.toast(tostring(why)) end)\n'
    )
    done = cru("hi", home=here)
    assert (done.code, done.out) == (0, "fine\n")
    assert f"the vault {here.path}/notes is not there" in done.err and "Kiln error: the vault" in done.err
