"""`cru vault` as a user types it."""

from __future__ import annotations

import json
import os
import re
import shutil
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.features.vault.support import NOTES, write_notes
from tests.kit import Done, HomeDir, cru, home, pty

from cru.faces.cli.console import StandardOutput
from cru.faces.cli.vault.lines import show_hits
from cru.features.vault.search.full_text import Hit

HOSTILE = '</script><script>alert(1)</script>"&'


@pytest.fixture
def here(tmp_path: Path) -> HomeDir:
    """A vault with three notes that link in a row, one alone, and one link to nothing."""
    made = home(tmp_path)
    write_notes(
        made.path / "notes",
        {
            "Home.md": "# Home\nSee [[Retry policy]] and [[Nowhere]]. #start\n",
            "work/Retry policy.md": "---\nstatus: open\n---\nTry again with a growing pause, see [[Backoff]]. #work/net\n",
            "work/Backoff.md": "Twice the pause each time.\n",
            "Alone.md": "Nobody knows me.\n",
        },
    )
    assert cru("vault", "init", "~/notes", home=made).code == 0
    return made


def ran(here: HomeDir, *words: str) -> str:
    done = cru("vault", *words, home=here)
    assert (done.code, done.err) == (0, ""), done
    return done.out


def data(here: HomeDir, *words: str) -> object:
    return json.loads(ran(here, *words, "--json"))


def failed(here: HomeDir, *words: str, code: int = 1) -> Done:
    done = cru("vault", *words, home=here)
    assert done.code == code and done.out == "" and "Traceback" not in done.err, done
    return done


def test_a_folder_becomes_the_vault_and_other_settings_stay(tmp_path: Path) -> None:
    here = home(tmp_path, config='# mine\nmodel = "x"\n[vault]\nname = "second brain"\n')
    shutil.copytree(NOTES, here.path / "my notes")
    out = ran(here, "init", str(here.path / "my notes"))
    assert "second brain" in out and "notes" in out
    text = (here.cru / "config.toml").read_text()
    assert text.startswith('# mine\nmodel = "x"\n') and f'path = "{here.path}/my notes"' in text
    assert out == ran(here, "status")


def test_a_missing_folder_is_made_and_what_was_the_vault_before_is_told(here: HomeDir) -> None:
    out = ran(here, "init", "other/place")
    assert f"before, the vault was {here.path}/notes" in out and (here.project / "other" / "place").is_dir()
    assert data(here, "status")["notes"] == 0  # type: ignore[index]


@pytest.mark.parametrize("folder", ["file.md", "file.md/below", "~/.cru/notes", " "])
def test_what_cannot_be_a_vault_is_refused_and_nothing_is_changed(here: HomeDir, folder: str) -> None:
    (here.project / "file.md").write_text("x")
    before = (here.cru / "config.toml").read_text()
    failed(here, "init", folder)
    assert (here.cru / "config.toml").read_text() == before


def test_a_relative_path_is_below_the_project_root_wherever_in_it_cru_is_started(tmp_path: Path) -> None:
    made = home(tmp_path, config='[vault]\npath = "docs"\n')
    (made.project / ".git").mkdir()
    write_notes(made.project / "docs", {"Home.md": "hello\n"})
    (made.project / "sub").mkdir()
    for folder in (made.project, made.project / "sub"):
        for words in (("vault", "search", "hello"), ("/vault search hello",)):
            done = cru(*words, home=made, cwd=folder)
            assert (done.code, done.out.splitlines()[:1], done.err) == (0, ["Home.md"], ""), (folder, words, done)


@pytest.mark.parametrize("line", ['max_note_kb = "many"', "exclude = 3", 'grounding = "x"', "nmae = 1"])
def test_a_table_that_is_wrong_is_told_before_anything_is_made(tmp_path: Path, line: str) -> None:
    made = home(tmp_path, config=f"[vault]\n{line}\n")
    done = failed(made, "init", str(tmp_path / "new"))
    assert line.split()[0] in done.err and "Traceback" not in done.err
    assert not (tmp_path / "new").exists() and "path" not in (made.cru / "config.toml").read_text()


def test_without_a_vault_every_verb_says_how_to_get_one(tmp_path: Path) -> None:
    nobody = home(tmp_path)
    for words in (["status"], ["search", "x"], ["read", "x"], ["graph"], ["undo"], ["index"], []):
        assert "no vault is configured\n  cru vault init FOLDER" in failed(nobody, *words).err


def test_a_folder_that_has_gone_is_told(here: HomeDir) -> None:
    (here.path / "notes").rename(here.path / "moved")
    assert "is not there" in failed(here, "search", "pause").err


def test_the_status_counts(here: HomeDir) -> None:
    status = data(here, "status")
    assert isinstance(status, dict)
    assert {key: status[key] for key in ("notes", "links", "dangling", "tags", "orphans", "problems")} == {
        "notes": 4, "links": 2, "dangling": 1, "tags": 2, "orphans": 1, "problems": [],
    }  # fmt: skip


def test_a_search_gives_the_best_notes_with_what_was_found(here: HomeDir) -> None:
    assert ran(here, "search", "growing", "pause") == (
        "work/Retry policy.md\n    Try again with a growing pause, see [[Backoff]]. #work/net\n"
    )
    assert [hit["path"] for hit in data(here, "search", "pause", "-n", "1")] == ["work/Backoff.md"]  # type: ignore[attr-defined]
    assert ran(here, "search", "#work") == "work/Retry policy.md\n"


class FakeTerminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_what_was_found_stands_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StandardOutput, "stream", terminal := FakeTerminal())
    monkeypatch.setattr("cru.faces.cli.vault.lines.takes_styles", lambda fd: True)
    show_hits([Hit("a.md", "a", 1.0, "some \x02evil\x03 \x1b[2Jtext")])
    assert terminal.getvalue() == "a.md\n    some \x1b[1mevil\x1b[0m \\x1b[2Jtext\n"


def test_what_notes_say_does_no_harm_to_a_terminal(here: HomeDir) -> None:
    (here.path / "notes" / "Evil.md").write_text("evil \x1b]0;owned\x07 pause\n")
    with pty("vault", "search", "evil", home=here) as terminal:
        terminal.expect("x07")
        assert "\\x1b]0;owned" in terminal.text


def test_nothing_that_fits_is_no_error(here: HomeDir) -> None:
    done = cru("vault", "search", "zeppelin", home=here)
    assert (done.code, done.out, done.err) == (0, "", "no note has that\n")


@pytest.mark.parametrize("text", ['"open', "-draft", '""'])
def test_a_search_that_cannot_be_understood_says_why(here: HomeDir, text: str) -> None:
    assert failed(here, "search", f" {text}").err.startswith("cru: ")


def test_a_note_is_read_by_its_title_in_any_case(here: HomeDir) -> None:
    assert ran(here, "read", "retry POLICY").endswith("see [[Backoff]]. #work/net\n")
    note = data(here, "read", "Home")
    assert isinstance(note, dict) and note["links_to"] == ["work/Retry policy.md"] and note["tags"] == ["start"]


def test_an_unknown_note_is_told_with_the_nearest_one(here: HomeDir) -> None:
    assert "did you mean `Retry policy`?" in failed(here, "read", "Rety policy").err
    assert "cru vault search" in failed(here, "links", "zzzzzzzzz").err
    assert "there is no note" in failed(here, "path", "Home", "../../etc/passwd").err


def test_links_lead_both_ways(here: HomeDir) -> None:
    assert ran(here, "links", "Home") == (
        "Home.md\n  -> work/Retry policy.md\n  -> Nowhere  (line 2: there is no such note)\n"
    )
    assert data(here, "links", "Retry policy") == {
        "path": "work/Retry policy.md", "out": ["work/Backoff.md"], "back": ["Home.md"], "dangling": [],
    }  # fmt: skip
    assert ran(here, "neighbors", "Home", "-d", "2") == "work/Backoff.md\nwork/Retry policy.md\n"
    assert ran(here, "path", "Backoff", "Home") == "work/Backoff.md\nwork/Retry policy.md\nHome.md\n"
    assert cru("vault", "path", "Home", "Alone", home=here).err == "no way leads there over links\n"
    assert ran(here, "orphans") == "Alone.md\n"
    assert ran(here, "dangling") == "Home.md:2  Nowhere\n"
    assert ran(here, "tags") == "     1  #start\n     1  #work/net\n"


@pytest.mark.parametrize(
    ("query", "out"),
    [
        ('outlinks("Home")', "work/Retry policy.md\n"),
        ('find("Home") | ->[] | .[].title', "Retry policy\n"),
        ("SELECT inlinks FROM 'Backoff'", "work/Retry policy.md\n"),
        ("MATCH (a {title: 'Home'})-[*1..2]->(b) RETURN b.title AS t, b", None),
    ],
)
def test_the_graph_is_queried_in_three_forms(here: HomeDir, query: str, out: str | None) -> None:
    text = ran(here, "query", query)
    assert text == out if out else sorted(json.loads(line)["b"] for line in text.splitlines()) == [
        "work/Backoff.md", "work/Retry policy.md",
    ]  # fmt: skip


@pytest.mark.parametrize("query", ["outlinks(", "SELECT x FROM 'A'", 'find("Home") | .[', " "])
def test_a_query_that_cannot_be_understood_says_where(here: HomeDir, query: str) -> None:
    assert failed(here, "query", query).err.startswith("cru: ")


def test_a_rename_takes_the_links_along_and_can_be_taken_back(here: HomeDir) -> None:
    before = (here.path / "notes" / "Home.md").read_text()
    assert ran(here, "rename", "Retry policy", "work/Trying again").startswith(
        "work/Retry policy.md is work/Trying again.md now\n  Home.md: 1 link\n"
    )
    assert "[[Trying again]]" in (here.path / "notes" / "Home.md").read_text()
    assert ran(here, "undo") == "work/Trying again.md is work/Retry policy.md again\n"
    assert (here.path / "notes" / "Home.md").read_text() == before
    assert cru("vault", "undo", home=here).err == "there is no rename to take back\n"


def test_a_rename_overwrites_nothing_and_stays_inside(here: HomeDir) -> None:
    assert "is there already" in failed(here, "rename", "Home", "Alone").err
    assert "not a note of this vault" in failed(here, "rename", "Home", "../out").err


def test_the_index_says_what_changed_and_is_made_anew(here: HomeDir) -> None:
    (here.path / "notes" / "New.md").write_text("new\n")
    assert ran(here, "index").startswith("1 created, 0 modified")
    counts = data(here, "index", "--rebuild")
    assert isinstance(counts, dict) and counts["created"] == 5


def test_a_damaged_index_costs_nothing(here: HomeDir) -> None:
    (index,) = (here.cru / "vaults").glob("*/notes-*.sqlite")
    index.write_bytes(b"no database at all")
    assert ran(here, "search", "growing").startswith("work/Retry policy.md")


def test_the_graph_is_a_page_without_network_in_which_notes_are_data(here: HomeDir) -> None:
    (here.path / "notes" / "Evil.md").write_text(f"---\ntitle: {json.dumps(HOSTILE)}\n---\n[[Home]]\n")
    file = here.project / "graph.html"
    assert ran(here, "graph", "-o", "graph.html") == f"{file}  (5 notes, 3 links)\n"
    page = file.read_text()
    assert page.count("<script") == 2 and HOSTILE not in page and not re.search(r"(src|href)=|https?://", page)
    content = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert HOSTILE in [note["title"] for note in content["notes"]]
    assert "#start" in [note["title"] for note in content["notes"]]


def test_the_graph_as_svg_is_well_formed(here: HomeDir) -> None:
    (here.path / "notes" / "Evil.md").write_text(f"---\ntitle: {json.dumps(HOSTILE)}\n---\n[[Home]]\n")
    ran(here, "graph", "--svg", "-o", "graph.svg")
    root = ElementTree.parse(here.project / "graph.svg").getroot()
    assert sum(element.tag.endswith("circle") for element in root.iter()) == 7
    assert HOSTILE[:40] in [element.text for element in root.iter() if element.tag.endswith("text")]


def test_a_graph_that_cannot_be_written_is_told(here: HomeDir) -> None:
    os.mkdir(here.project / "taken")
    assert "taken" in failed(here, "graph", "-o", "taken").err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["serch", "x"], "did you mean: cru vault search x"),
        (["read"], "`cru vault read` needs NOTE"),
        (["read", "a", "b"], "does not take b"),
        (["orphans", "-n", "3"], "does not take -n"),
        (["search", "x", "-n", "0"], "from 1 to 1,000"),
        (["neighbors", "Home", "-d", "many"], "-d needs a number"),
    ],
)
def test_words_that_do_not_fit_are_refused(here: HomeDir, words: list[str], text: str) -> None:
    assert text in failed(here, *words, code=2).err


def test_its_settings_are_settings_as_all_others(here: HomeDir) -> None:
    assert cru("-n", "vault.path", home=here).out == f"{here.path}/notes\n"
    here.configure("[vualt]\npath = '/x'\n")
    wrong = cru("vault", home=here)
    assert (
        wrong.code == 1
        and "config.toml:1: unknown setting `vualt`" in wrong.err
        and "did you mean `vault`?" in wrong.err
    )
    here.configure("")
    assert cru("-n", "vault.max_note_kb", home=here).out == "4096\n"
    assert cru("-s", "vault.path=/nowhere", "-n", "vault.path", home=here).out == "/nowhere\n"


def test_a_project_that_is_not_trusted_cannot_name_the_vault(here: HomeDir) -> None:
    (here.project / ".cru").mkdir()
    (here.project / ".cru" / "config.toml").write_text(f"[vault]\npath = '{here.project}'\n")
    assert data(here, "status")["path"] == f"{here.path}/notes"  # type: ignore[index]
