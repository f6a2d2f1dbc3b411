"""What a person types, and the notes that come back."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from tests.features.vault.support import open_vault, write_notes

from cru.features.vault import BadQuery, VaultSettings
from cru.features.vault.search import full_text
from cru.features.vault.search.full_text import BEGIN, END, search
from cru.features.vault.search.modes import SearchMode
from cru.features.vault.search.query import parse_search
from cru.features.vault.vault import Vault

NOTES = {
    "retry.md": "---\ntags: [net/http]\nstatus: open\n---\n# Backoff\nThe retry policy doubles its wait. Größe matters.",
    "policy.md": "A policy without a second try. [due:: 2026-01-02]",
    "sub/Retry policy.md": "Nothing here but the name. #net",
    "other.md": "---\nstatus: done\nowners: [Ann, Bob]\n---\nRetrying is a virtue; policy, retry. #network",
}


QUERIES = [
    ("retry policy", ["sub/Retry policy.md", "other.md", "retry.md"]),
    ('"retry policy"', ["sub/Retry policy.md", "retry.md"]),
    ("retry*", ["other.md", "retry.md", "sub/Retry policy.md"]),
    ("RETRY GROßE", ["retry.md"]),
    ("policy -retry", ["policy.md"]),
    ("virtue OR doubles", ["other.md", "retry.md"]),
    ("policy virtue OR doubles", ["other.md", "retry.md"]),
    ("heading:backoff", ["retry.md"]),
    ("title:policy", ["policy.md", "sub/Retry policy.md"]),
    ("#net", ["retry.md", "sub/Retry policy.md"]),
    ("tag:net/http", ["retry.md"]),
    ("policy -tag:net", ["other.md", "policy.md"]),
    ("path:sub/", ["sub/Retry policy.md"]),
    ("status:open", ["retry.md"]),
    ("owners:bob", ["other.md"]),
    ("due:2026-01-02 policy", ["policy.md"]),
    ("-status:open policy retry", ["other.md", "sub/Retry policy.md"]),
    ("nowhere", []),
    ("NEAR(retry policy)", []),
    ("title:x OR AND NOT ( ) * ^ + ' ; --", []),
]


@pytest.mark.parametrize(("query", "paths"), QUERIES)
def test_search(tmp_path: Path, query: str, paths: list[str]) -> None:
    with open_vault(tmp_path, NOTES) as index:
        hits = search(index.connection, parse_search(query))
        assert sorted(hit.path for hit in hits) == sorted(paths)


@pytest.mark.parametrize("most", [0, 1, 2])
def test_words_that_more_notes_have_than_are_compared_find_the_same(
    tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_vault(tmp_path, NOTES) as index:
        for query, paths in QUERIES:
            monkeypatch.setattr(full_text, "MOST_RANKED", most)
            hits = search(index.connection, parse_search(query))
            assert sorted(hit.path for hit in hits) == sorted(paths), query
            assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True), query
            assert len(search(index.connection, parse_search(query), limit=1)) == min(1, len(paths)), query


def test_of_words_that_most_notes_have_those_in_names_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = {f"{n}.md": "the plan of it" for n in range(30)}
    notes |= {"the plan.md": "x " * 500, "h.md": "# The\n" + "the plan " * 9, "z.md": "the plan rarely"}
    monkeypatch.setattr(full_text, "MOST_RANKED", 10)
    with open_vault(tmp_path, notes) as index:

        def first(query: str, count: int) -> list[str]:
            return [hit.path for hit in search(index.connection, parse_search(query), count)]

        assert first("the plan", 1) == ["the plan.md"]
        assert first("the", 2) == ["the plan.md", "h.md"]
        assert first("rarely OR plan", 1) == ["z.md"], "a rare word says more than one that all have"
        assert first("the plan path:z", 5) == ["z.md"] and len(first("the", 99)) == 33
        [hit] = search(index.connection, parse_search("the plan"), 1)
        assert hit.score > 0 and hit.snippet == " ".join(["x"] * 24) + "…"


def test_the_best_come_first(tmp_path: Path) -> None:
    with open_vault(tmp_path, NOTES) as index:
        hits = search(index.connection, parse_search("retry policy"))
        assert hits[0].path == "sub/Retry policy.md", "the title counts most"
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert len(search(index.connection, parse_search("policy"), limit=1)) == 1


def test_what_was_found_is_marked(tmp_path: Path) -> None:
    with open_vault(tmp_path, NOTES) as index:
        [hit] = search(index.connection, parse_search("doubles wait"))
        assert f"{BEGIN}doubles{END} its {BEGIN}wait{END}" in hit.snippet


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ('say "no', "column 5"),
        ("-draft", "something to look for"),
        ("", "nothing to look for"),
        ("()", "nothing to look for"),
    ],
)
def test_what_cannot_be_understood_says_why(tmp_path: Path, query: str, message: str) -> None:
    with open_vault(tmp_path, NOTES) as index, pytest.raises(BadQuery, match=message):
        search(index.connection, parse_search(query))


def test_a_long_note_that_repeats_a_word_is_shown_where_it_is_first(tmp_path: Path) -> None:
    text = "begin " * 100 + "Before the " + "word " * 300_000
    with open_vault(tmp_path, {"long.md": text}) as index:
        [hit] = search(index.connection, parse_search("word"))
        assert hit.snippet.startswith("…") and f"Before the {BEGIN}word{END} {BEGIN}word{END}" in hit.snippet
        assert len(hit.snippet) < 500


@pytest.mark.parametrize(
    ("query", "paths"),
    [
        ("localhost:8080", ["server.md"]),
        ("where is localhost:8080", ["server.md"]),
        ("std::vector", ["server.md"]),
        ("std::vector::at server", ["server.md"]),
        ("Failed:connection refused", ["server.md"]),
        ('failed:"connection refused"', ["server.md"]),
        ("localhost:80", []),
        ("https://example.com/guide", ["server.md"]),
        ("status:open", ["task.md"]),
        ("status:refused", []),
        ("STATUS:open", ["task.md"]),
        ("server -localhost:8080", ["server.md"]),
        ("title:server", ["server.md"]),
    ],
)
def test_a_colon_is_a_property_only_where_a_note_has_it(tmp_path: Path, query: str, paths: list[str]) -> None:
    text = "# Server\nIt runs at localhost:8080, see https://example.com/guide: `std::vector::at` failed: connection refused."
    write_notes(tmp_path / "notes", {"server.md": text, "task.md": "---\nstatus: open\n---\nStatus refused."})
    vault = Vault(tmp_path / "notes", tmp_path / "home", VaultSettings())
    with closing(vault):
        vault.update()
        assert [hit.path for hit in vault.search_notes(query, mode=SearchMode.TEXT).hits] == paths
