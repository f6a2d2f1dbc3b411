"""Search by meaning as a person, a model and a script have it, with the model that is shipped. Each run loads it, so there are few."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.features.vault.support import write_notes
from tests.kit import HomeDir, Reply, cru, home, server

ON = {"CRU_EMBEDDINGS": ""}
NOTES = {
    "Retry policy.md": "Failed requests are repeated with a growing pause.\n",
    "Bread.md": "Feed the sourdough twice and bake it in a pot.\n",
    "private/Diary.md": "My secret attempts to repeat what failed.\n",
}
QUESTION = "how do we try again after an error"


@pytest.fixture
def here(tmp_path: Path) -> HomeDir:
    here = home(tmp_path)
    write_notes(here.path / "notes", NOTES)
    here.configure('[vault]\npath = "~/notes"\n')
    return here


def searched(here: HomeDir, *words: str, env: dict[str, str] | None = None) -> list[str]:
    done = cru("vault", "search", *words, "--json", home=here, env=env)
    assert done.code == 0 and "Traceback" not in done.err, done
    return [hit["path"] for hit in json.loads(done.out)]


@pytest.mark.slow
def test_a_person_finds_what_shares_no_word(here: HomeDir) -> None:
    unknown = cru("vault", home=here, env=ON).out
    assert "0 notes are known by their meaning; a search or `cru vault index` adds the others\n" in unknown
    assert searched(here, QUESTION, env=ON)[0] == "Retry policy.md", "both ways are the default where it is installed"
    assert searched(here, QUESTION, "--mode", "text", env=ON) == []
    assert "3 notes are known by their meaning\n" in cru("vault", home=here, env=ON).out
    done = cru("vault", "search", "Brot backen", "--mode", "semantic", home=here)
    assert done.out.splitlines()[:2] == ["Bread.md", f"    {NOTES['Bread.md'].strip()}"]


def test_the_environment_and_the_settings_turn_it_off(here: HomeDir) -> None:
    assert searched(here, QUESTION) == []
    here.configure('[vault]\npath = "~/notes"\nsearch_mode = "text"\n')
    assert searched(here, QUESTION, env=ON) == []
    [index] = (here.cru / "vaults").glob("*/notes-*.sqlite")
    assert b"passages" not in index.read_bytes(), "nothing is embedded then"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("search", "x", "--mode", "fast"), "--mode needs text, semantic, hybrid, not fast"),
        (("search", "x", "--mode"), "--mode needs a value"),
        (("links", "Bread", "--mode", "text"), "`cru vault links` does not take --mode"),
    ],
)
def test_a_mode_that_there_is_not(here: HomeDir, words: tuple[str, ...], message: str) -> None:
    done = cru("vault", *words, home=here)
    assert done.code == 2 and done.out == "" and message in done.err


@pytest.mark.slow
def test_the_model_searches_by_meaning_but_not_what_rules_hide(here: HomeDir) -> None:
    call = {"query": "attempts after a failure", "mode": "semantic"}
    (here.path / "model.txt").write_text(f"call: vault_search {json.dumps(call)}\n---\ntext: done\n")
    rules = f'[permissions]\ndeny = ["read:{here.path}/notes/private/*"]\n'
    here.configure(f'model = "scripted:{here.path}/model.txt"\n{rules}[vault]\npath = "~/notes"\n')
    assert cru("go", home=here).code == 0
    [answer] = [entry["content"] for entry in here.log() if entry["entry_type"] == "tool_result"]
    assert answer.startswith("Retry policy.md\n    Failed requests are") and "[1 file left out" in answer
    assert "Diary" not in answer and "secret" not in answer


def test_a_mode_of_the_model_that_there_is_not(here: HomeDir) -> None:
    (here.path / "model.txt").write_text('call: vault_search {"query": "x", "mode": "fast"}\n---\ntext: done\n')
    here.configure(f'model = "scripted:{here.path}/model.txt"\n[vault]\npath = "~/notes"\n')
    assert cru("go", home=here).code == 0
    [answer] = [entry["content"] for entry in here.log() if entry["entry_type"] == "tool_result"]
    assert "`mode`" in answer and "fast" in answer


@pytest.mark.slow
def test_scripts_search_by_meaning(here: HomeDir) -> None:
    plugins = here.cru / "plugins"
    plugins.mkdir()
    (plugins / "in_lua.lua").write_text(
        f"""cru.on("session:started", function()
  local hits = cru.vault.search("{QUESTION}", {{limit = 1, mode = "semantic"}})
  local note = cru.kiln.get("Bread.md")
  cru.fs.write("lua.json", cru.json.encode({{hits[1].path, hits[1].snippet, note.has_embedding}}))
end)
"""
    )
    (plugins / "in_python.py").write_text(
        f"""import cru.core.api.python as cru

def setup(_):
    async def started(*_):
        hits = await cru.search("{QUESTION}", {{"mode": "hybrid"}})
        cru.fs.write("python.txt", hits[0]["path"])
    cru.on("session:started", started)
"""
    )
    with server([Reply("fine")]) as model:
        here.configure('[vault]\npath = "~/notes"\n', url=model.url)
        done = cru("go", home=here)
    assert (done.code, done.err) == (0, ""), done
    assert json.loads((here.project / "lua.json").read_text()) == [
        "Retry policy.md",
        NOTES["Retry policy.md"].strip(),
        True,
    ]
    assert (here.project / "python.txt").read_text() == "Retry policy.md"
