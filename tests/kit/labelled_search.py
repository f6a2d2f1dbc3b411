"""`python -m tests.kit.labelled_search`: how good the search of notes is, on the labelled notes and queries of tests/data/search.

recall@5: part of the right notes that are among the first five; MRR: one over the place of the first right one (of ten); nDCG@10: how
high the right ones stand. All of the queries, and by kind: `meaning` shares as good as no word with its note, `words` and `code` do,
`german` is another language than the note's or both, `prompt` is a sentence to an agent. `questions` are those of
questions.tsv, about the pages in docs/, which are long and have many subjects each.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from cru.features.vault import BadQuery, VaultSettings
from cru.features.vault.search.modes import SearchMode
from cru.features.vault.vault import Vault, find_vault

DATA = Path(__file__).parent.parent / "data" / "search"
LOOKED_AT = 10
FIRST = 5


class LabelledQuery(Struct, frozen=True):
    """right: titles of the notes that answer it"""

    kind: str
    text: str
    right: tuple[str, ...]


class Quality(Struct, frozen=True):
    """Means over some queries, each from 0 to 1."""

    recall: float
    mrr: float
    ndcg: float


def labelled_queries() -> list[LabelledQuery]:
    rows = [line.split("\t") for line in (DATA / "queries.tsv").read_text().splitlines()]
    return [LabelledQuery(kind, text, tuple(right.split(";"))) for kind, text, right in rows]


def doc_questions() -> list[LabelledQuery]:
    """Return questions, and the pages of docs/ that answer them."""
    rows = [line.split("\t") for line in (DATA / "questions.tsv").read_text().splitlines()]
    return [LabelledQuery("questions", text, tuple(right.split(";"))) for text, right in rows]


def doc_pages() -> dict[str, str]:
    """Return the pages of docs/ by name."""
    return {path.stem: path.read_text() for path in (DATA.parents[2] / "docs").glob("*.md")}


def labelled_notes() -> dict[str, str]:
    """Title → text."""
    parts = (DATA / "notes.txt").read_text().removeprefix("# ").split("\n# ")
    return {title: text.strip() for title, _, text in (part.partition("\n") for part in parts)}


def labelled_vault(folder: Path, notes: Mapping[str, str] | None = None) -> Vault:
    """Return a vault with a file for each of the notes, embedded."""
    root = folder / "notes"
    root.mkdir(parents=True)
    for title, text in (notes or labelled_notes()).items():
        (root / f"{title}.md").write_text(f"{text}\n")
    vault = find_vault(VaultSettings(str(root)), folder / "home")
    vault.update()
    vault.embed()
    return vault


def measure(vault: Vault, queries: Sequence[LabelledQuery], mode: SearchMode) -> Quality:
    def titles(text: str) -> list[str]:
        try:
            return [hit.title for hit in vault.search_notes(text, LOOKED_AT, mode).hits]
        except BadQuery:
            return []

    return mean_quality(queries, titles)


def mean_quality(queries: Sequence[LabelledQuery], answer: Callable[[str], Sequence[str]]) -> Quality:
    scores = [_quality(query.right, answer(query.text)[:LOOKED_AT]) for query in queries]
    return Quality(*(sum(each) / len(scores) for each in zip(*scores, strict=True)))


def _quality(right: Sequence[str], titles: Sequence[str]) -> tuple[float, float, float]:
    places = [place for place, title in enumerate(titles, 1) if title in right]
    best = sum(1 / math.log2(place + 1) for place in range(1, len(right) + 1))
    recall = sum(place <= FIRST for place in places) / len(right)
    return recall, 1 / places[0] if places else 0.0, sum(1 / math.log2(place + 1) for place in places) / best


def table(vault: Vault) -> Mapping[tuple[SearchMode, str], Quality]:
    queries = labelled_queries()
    kinds = ("all", *dict.fromkeys(query.kind for query in queries))
    return {
        (mode, kind): measure(vault, [query for query in queries if kind in ("all", query.kind)], mode)
        for mode in SearchMode
        for kind in kinds
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        vault = labelled_vault(Path(folder))
        for (mode, kind), quality in table(vault).items():
            print(
                f"{mode:<9} {kind:<8} recall@5 {quality.recall:.2f}  MRR {quality.mrr:.2f}  nDCG@10 {quality.ndcg:.2f}"
            )
        vault.close()
        pages = labelled_vault(Path(folder, "pages"), doc_pages())
        for mode in SearchMode:
            quality = measure(pages, doc_questions(), mode)
            print(
                f"{mode:<9} questions recall@5 {quality.recall:.2f}  MRR {quality.mrr:.2f}  nDCG@10 {quality.ndcg:.2f}"
            )
        pages.close()


if __name__ == "__main__":
    main()
