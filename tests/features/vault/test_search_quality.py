"""The model that is shipped, on labelled notes and queries (`python -m tests.kit.labelled_search` prints all of it)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kit.labelled_search import labelled_notes, labelled_queries, labelled_vault, measure

from cru.features.vault.search.modes import SearchMode
from cru.features.vault.vault import Vault


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vault]:
    labelled = labelled_vault(tmp_path_factory.mktemp("labelled"))
    yield labelled
    labelled.close()


def test_the_labels_are_whole() -> None:
    notes, queries = labelled_notes(), labelled_queries()
    assert len(notes) >= 120 and len(queries) >= 60
    assert {title for query in queries for title in query.right} <= notes.keys()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "mode", "recall", "mrr"),
    [
        ("meaning", SearchMode.SEMANTIC, 0.60, 0.50),
        ("meaning", SearchMode.HYBRID, 0.60, 0.50),
        ("german", SearchMode.HYBRID, 0.90, 0.85),
        ("words", SearchMode.HYBRID, 1.0, 1.0),
        ("code", SearchMode.HYBRID, 1.0, 1.0),
        ("code", SearchMode.TEXT, 1.0, 1.0),
    ],
)
def test_how_much_is_found(vault: Vault, kind: str, mode: SearchMode, recall: float, mrr: float) -> None:
    quality = measure(vault, [query for query in labelled_queries() if query.kind == kind], mode)
    assert quality.recall >= recall and quality.mrr >= mrr, quality


@pytest.mark.slow
def test_both_ways_are_better_than_each(vault: Vault) -> None:
    text, semantic, hybrid = (measure(vault, labelled_queries(), mode) for mode in SearchMode)
    assert hybrid.ndcg > semantic.ndcg > text.ndcg
    assert hybrid.recall >= semantic.recall > text.recall


def test_no_word_is_shared(vault: Vault) -> None:
    assert vault.search("how do we try again after an error") == []
    hits = vault.search_notes("how do we try again after an error", mode=SearchMode.HYBRID).hits
    assert "Retry policy" in [hit.title for hit in hits[:3]]


def test_what_nothing_is_about_finds_little(vault: Vault) -> None:
    for query in ("history of the roman empire", "lipstick colours for winter", "xqzzt"):
        assert len(vault.search_notes(query, mode=SearchMode.SEMANTIC).hits) <= 6
