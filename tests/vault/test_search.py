"""What a person types, and the notes that come back."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.vault.support import open_vault

from cru.vault import BadQuery
from cru.vault.search.full_text import BEGIN, END, search
from cru.vault.search.query import parse_search

NOTES = {
    "retry.md": "---\ntags: [net/http]\nstatus: open\n---\n# Backoff\nThe retry policy doubles its wait. Größe matters.",
    "policy.md": "A policy without a second try. [due:: 2026-01-02]",
    "sub/Retry policy.md": "Nothing here but the name. #net",
    "other.md": "---\nstatus: done\nowners: [Ann, Bob]\n---\nRetrying is a virtue; policy, retry. #network",
}


@pytest.mark.parametrize(
    ("query", "paths"),
    [
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
    ],
)
def test_search(tmp_path: Path, query: str, paths: list[str]) -> None:
    with open_vault(tmp_path, NOTES) as index:
        hits = search(index.connection, parse_search(query))
        assert sorted(hit.path for hit in hits) == sorted(paths)


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
