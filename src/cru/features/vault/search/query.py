"""What a person types to search: words (all of them), `"a phrase"`, `start*`, `-not`, `a OR b`, `#tag` or `tag:name` (and what is below
it), `path:folder/`, `title:word`, and `key:value` of the front matter or an inline field."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from cru.features.vault import BadQuery
from cru.features.vault.keys import fold
from cru.features.vault.search.forms import other_form

_TOKEN = re.compile(
    r"""\s*(?P<not>-)?(?:
        (?P<key>[^\W\d][\w-]*):(?P<value>"[^"]*"|[^\s"]+)
        | \#(?P<tag>[\w/-]+)
        | "(?P<phrase>[^"]*)"(?P<star>\*)?
        | (?P<word>[^\s"]+)
    )""",
    re.X,
)
_WORDS = re.compile(r"\w+")
_COLUMNS = {"title": "title", "heading": "headings"}


FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
a an the of to in is and or for on with at by as if into out up so than then from about against without after before want wants
what how do does did which who when where why can could should would may must will i it its my our me we you your are be was
were this that these those there not no has have had use used uses der die das den dem des ein eine einen einem einer und oder
im zu zum zur von vom mit auf für ist sind war wird werden wie wer wo wann warum welche welcher welches ich wir du man es sich
nicht kein keine auch am bei aus nach um wenn dass
""",
    )
)
"""Words of questions that say nothing about their subject, in English and German."""


class FilterKind(StrEnum):
    TAG = "tag"
    PATH = "path"
    PROPERTY = "property"


class Filter(Struct, frozen=True):
    """One that a note must pass, or must not (is_not). key: of a property; value: folded."""

    kind: FilterKind
    key: str
    value: str
    is_not: bool = False


class SearchQuery(Struct, frozen=True):
    """match: an expression of FTS5, "" for any text; words: what is looked for, for a search by meaning; filters: all must hold;
    terms: what match is made of but for what must not be there: expressions of each of which one must be found; required, excluded:
    expressions for what was written so that those very words must be there (phrases, start*, title:), or must not, "" for nothing."""

    match: str
    words: str
    filters: tuple[Filter, ...] = ()
    terms: tuple[tuple[str, ...], ...] = ()
    required: str = ""
    excluded: str = ""


def all_of(terms: Iterable[Sequence[str]]) -> str:
    """The expression of FTS5 for one expression of each."""
    return " AND ".join(f"({' OR '.join(each)})" if len(each) > 1 else each[0] for each in terms)


def loosened(query: SearchQuery) -> SearchQuery | None:
    """Return the search for notes with any of the words, for when no note has all of them; None if there is nothing to loosen. Phrases,
    `start*` and `title:` must still be there."""
    terms = [each for term in query.terms for each in term if each.strip('"').casefold() not in FUNCTION_WORDS]
    if len(query.terms) < 2 or not terms:
        return None
    match = f"({' OR '.join(terms)})"
    if query.required:
        match = f"({query.required}) AND {match}"
    if query.excluded:
        match = f"({match}) NOT ({query.excluded})"
    return replace(query, match=match, terms=(tuple(terms),))


class _Terms:
    """What a note must have. Each is expressions of FTS5 of which one is enough, and exact if those very words are meant."""

    def __init__(self) -> None:
        self._terms: list[tuple[tuple[str, ...], bool]] = []

    def __bool__(self) -> bool:
        return bool(self._terms)

    def add(self, term: str, is_exact: bool, *, is_alternative: bool) -> None:
        others, others_are = self._terms.pop() if is_alternative and self._terms else ((), True)
        self._terms.append(((*others, term), is_exact and others_are))

    def all(self, *, exact_only: bool = False) -> tuple[tuple[str, ...], ...]:
        return tuple(each for each, is_exact in self._terms if is_exact or not exact_only)


def parse_search(text: str, has_property: Callable[[str], bool] = lambda key: True) -> SearchQuery:
    """Return what a text looks for. Raises BadQuery.

    has_property: whether a note has this folded key; `localhost:8080` is a phrase where none has `localhost`
    """
    terms = _Terms()
    excluded: list[str] = []
    filters: list[Filter] = []
    plain: list[str] = []
    joins_next = False
    for token in _tokens(text):
        if token["word"] == "OR" and terms:
            joins_next = True
            continue
        if condition := _filter(token, has_property):
            filters.append(condition)
            continue
        term = _term(token)
        if not term:
            continue
        if token["not"]:
            excluded.append(term)
            continue
        plain.append(_written(token).rstrip("*"))
        terms.add(term, token["word"] is None or _written(token).endswith("*"), is_alternative=joins_next)
        joins_next = False
    if excluded and not terms:
        raise BadQuery(
            "a search needs something to look for besides what must not be there", "add a word: retry -draft"
        )
    match, without = all_of(terms.all()), " OR ".join(excluded)
    if excluded:
        match = f"({match}) NOT ({without})"
    required = all_of(terms.all(exact_only=True))
    return SearchQuery(match, " ".join(plain), tuple(filters), terms.all(), required, without)


def _tokens(text: str) -> list[re.Match[str]]:
    if text.count('"') % 2:
        at = text.rindex('"')
        raise BadQuery(f"the quotation mark at column {at + 1} is not closed", 'close it: "retry policy"', at + 1)
    tokens = []
    at = 0
    while at < len(text) and (match := _TOKEN.match(text, at)):
        tokens.append(match)
        at = match.end()
    return tokens


def _filter(token: re.Match[str], has_property: Callable[[str], bool]) -> Filter | None:
    key, value = token["key"], (token["value"] or "").strip('"')
    is_not = bool(token["not"])
    if token["tag"] or key == "tag":
        return Filter(FilterKind.TAG, "", fold((token["tag"] or value).lstrip("#").rstrip("/")), is_not)
    if key is None or key in _COLUMNS:
        return None
    if key == "path":
        return Filter(FilterKind.PATH, "", fold(value.lstrip("/")), is_not)
    name = fold(key.strip())
    is_address = value.startswith("//")
    return (
        Filter(FilterKind.PROPERTY, name, fold(value), is_not)
        if not is_address and (is_not or has_property(name))
        else None
    )


def _term(token: re.Match[str]) -> str:
    """An expression of FTS5 that no text can break out of: each word in quotation marks."""
    written = _written(token)
    words = _WORDS.findall(written)
    if not words:
        return ""
    star = "*" if written.endswith("*") or token["star"] else ""
    forms = dict.fromkeys([" ".join(words), " ".join(other_form(word) or word for word in words)])
    term = " OR ".join(f'"{form}"{star}' for form in forms)
    if len(forms) > 1:
        term = f"({term})"
    column = _COLUMNS.get(token["key"] or "")
    return f"{column} : {term}" if column else term


def _written(token: re.Match[str]) -> str:
    value = (token["value"] or "").strip('"')
    is_only_value = (token["key"] or "title") in _COLUMNS or value.startswith("//")
    return token["phrase"] or token["word"] or (value if is_only_value else f"{token['key']}:{value}")
