"""`cru hooks review`: what awaits trust is shown with everything that it names, and a person says yes or no to each."""

from __future__ import annotations

import os
import sys
from itertools import groupby
from typing import NamedTuple

from cru.extensions.hooks.errors import NoEntry
from cru.extensions.hooks.inventory import HookInventory
from cru.extensions.hooks.model.entry import HookEntry
from cru.extensions.hooks.model.status import Activation, EntryStatus, MissingHook
from cru.extensions.hooks.trust.files import LookupBudget
from cru.extensions.hooks.trust.fingerprint import Fingerprint, relative, take_fingerprint
from cru.extensions.hooks.trust.store import judge_missing
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.hooks.display import AcceptedVersion, fold_line, render_hook, render_missing
from cru.faces.cli.hooks.inventory import load_inventory, update_hook_list
from cru.faces.cli.run_options import home_path

SHORTER = "a hook that names fewer files and folders can be: put the rest into a script"
KEYS = "t trust · r refuse · s skip · a trust all of this file · m show files whole · q quit"


class ReviewItem(NamedTuple):
    """Something to say yes or no to: one hook of a project, all hooks of one program's own files, or that an accepted one is not there as
    it was."""

    entries: list[HookEntry]
    looks: list[Fingerprint]
    dialect: str = ""
    lost: MissingHook | None = None

    @property
    def path(self) -> str:
        return self.lost.file if self.lost is not None else os.path.realpath(self.entries[0].source.path)

    @property
    def word(self) -> str:
        """What a person writes to accept it."""
        if self.lost is not None:
            return _id(self.lost)
        return self.dialect or f"{self.entries[0].id}@{self.looks[0].digest}"


def _id(lost: MissingHook) -> str:
    """Of one definition in one file: nothing can come after the look."""
    return f"gone-{judge_missing(lost)[0][:16]}"


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """Raises UsageProblem, NoEntry, NotStored and ConfigError."""
    said = _said(words)
    all_there = load_inventory(parsed)
    review = Review(parsed, all_there)
    if said:
        trusted = [review.seen(word) for word in said.get("--trust", ())]
        refused = [review.named(word) for word in said.get("--refuse", ())]
        for item in trusted:
            review.judge(item, accepted=True)
        for item in refused:
            review.judge(item, accepted=False)
        return 0
    review.mention_trust()
    items = review.waiting()
    if not items:
        _put("no hook awaits trust")
        return 0
    if sys.stdin.isatty() and sys.stderr.isatty():
        return review.ask(items)
    for item in items:
        review.show(item, whole=True)
    raise UsageProblem(
        "nothing is accepted unseen: there is no terminal to answer at",
        f"if you accept what is shown: {_how_to_trust(items)}",
    )


def _how_to_trust(items: list[ReviewItem]) -> str:
    """The command line that accepts these as they are now."""
    return f"cru hooks review --trust {' '.join(item.word for item in items)}"


def _said(words: tuple[str, ...]) -> dict[str, list[str]]:
    """The ids behind --trust and --refuse; with "all of it" nobody would have looked, so each is named."""
    said: dict[str, list[str]] = {}
    verb = ""
    for word in words:
        if word in ("--trust", "--refuse"):
            verb = word
            said.setdefault(verb, [])
        elif verb and not word.startswith("-"):
            said[verb].append(word)
        else:
            args = CommandArguments(
                "hooks", ("review", word), switches=("--trust", "--refuse"), verbs=("review",), most=2
            )
            raise args.unknown(word)
    empty = next((verb for verb, ids in said.items() if not ids), "")
    if empty:
        raise UsageProblem(f"{empty} needs an id", "cru hooks list shows them")
    return said


class Review:
    """Shows and notes. Everything is shown with control characters made visible, on whatever it is shown."""

    def __init__(self, parsed: Parsed, all_there: HookInventory) -> None:
        self._found = all_there
        self._config = home_path(parsed) / "config.toml"
        self._budget = LookupBudget()

    def waiting(self) -> list[ReviewItem]:
        loaded = self._found.loaded
        items = [self._item(one) for one in loaded.of(Activation.UNTRUSTED)]
        items += [ReviewItem([], [], lost=one) for one in loaded.missing]
        foreign = sorted(loaded.of(Activation.NOT_ACCEPTED), key=lambda one: one.entry.dialect)
        for dialect, group in groupby(foreign, key=lambda one: one.entry.dialect):
            items.append(ReviewItem([one.entry for one in group], [], dialect))
        return items

    def mention_trust(self) -> None:
        """The settings and plugins of a project are another matter."""
        about = self._found.facts
        path = about.root / ".cru" / "config.toml"
        if (
            path.is_file()
            and path.parent.resolve() != about.home.resolve()
            and not self._found.trust.store.is_trusted(path)
        ):
            _put(f"{path} is not trusted either: `cru trust`")

    def seen(self, word: str) -> ReviewItem:
        """What is to be trusted, if it is still what the word says: ID@DIGEST, as the review shows it. Raises NoEntry and UsageProblem."""
        name, _, digest = word.partition("@")
        item = self.named(name)
        if item.lost is not None or item.dialect or digest == item.looks[0].digest:
            return item
        self.show(item, whole=True)
        why = "is not what it was when it was shown" if digest else "says nothing of the content you have seen"
        raise UsageProblem(
            f"nothing is accepted: {name} {why}", f"read it again, as it is shown above; then: {_how_to_trust([item])}"
        )

    def named(self, word: str) -> ReviewItem:
        """What an id, or the name of a program, stands for. Raises NoEntry."""
        lost = next((one for one in self._found.loaded.missing if word == _id(one)), None)
        if lost is not None:
            return ReviewItem([], [], lost=lost)
        foreign = [one.entry for one in self._found.loaded.known if _is_foreign(one) and one.entry.dialect == word]
        if foreign:
            return ReviewItem(foreign, [], word)
        one = self._found.loaded.find(word)
        if one.entry.source.own and not one.entry.of_project:
            raise NoEntry(f"{one.entry.id} is your own and needs no trust", f"cru hooks disable {one.entry.id}")
        return self._item(one)

    def judge(self, item: ReviewItem, *, accepted: bool) -> None:
        """Note it, and that what an entry took the place of has been seen. All hooks of a program are turned on in config.toml; refusing
        notes each of them."""
        if item.lost is not None:
            if accepted:
                self._found.trust.settle([item.lost])
            _put(f"{item.word}: {'it may be so' if accepted else 'told again: put it back, or accept it'}")
            return
        looks = item.looks or [self._look(entry) for entry in item.entries]
        over = next((entry for entry, seen in zip(item.entries, looks, strict=True) if seen.over), None)
        if accepted and over is not None and not item.dialect:
            raise UsageProblem(f"{over.id} names more files than cru looks at, so it is not accepted", SHORTER)
        if item.dialect and accepted:
            update_hook_list(self._config, "dialects", item.dialect, there=True)
        self._found.trust.judge(list(zip(item.entries, looks, strict=True)), accepted=accepted)
        self._found.trust.settle(self._replaced(item))
        verb = "trusted as shown" if accepted else "refused, until it changes"
        for entry in item.entries:
            _put(f"{entry.id} is {verb}")

    def _replaced(self, item: ReviewItem) -> list[MissingHook]:
        """What was accepted earlier of the same file and name, and is not there any more as it was."""
        names = {(item.path, entry.label) for entry in item.entries}
        return [one for one in self._found.missing if (one.file, one.label) in names]

    # at a terminal ----------------------------------------------------------------------------------------------------------------

    def ask(self, items: list[ReviewItem]) -> int:
        whole_file = None
        for number, item in enumerate(items, 1):
            path = item.path
            print(f"\n{number} of {len(items)}")
            self.show(item)
            key = "t" if whole_file == path and not item.dialect else self._key(item)
            if key == "q":
                return 0
            if key == "a":
                whole_file = path
            if key in ("t", "a"):
                self.judge(item, accepted=True)
            elif key == "r":
                self.judge(item, accepted=False)
        return 0

    def _key(self, item: ReviewItem) -> str:
        while True:
            print(f"{KEYS} > ", end="", file=sys.stderr, flush=True)
            line = sys.stdin.readline()
            key = line.strip().lower()[:1]
            if not line:
                return "q"
            if key == "m":
                self.show(item, whole=True)
            elif key and key in "trsaq":
                return key

    def show(self, item: ReviewItem, *, whole: bool = False) -> None:
        if item.lost is not None:
            for line in render_missing(item.lost, item.word):
                for piece in fold_line(line, _width()):
                    print(piece)
        if item.dialect:
            _put(f"{item.dialect}: hooks of your own files, which are off here until you turn them on")
        looks = item.looks or [self._look(entry) for entry in item.entries]
        for entry, seen in zip(item.entries, looks, strict=True):
            for line in render_hook(entry, seen, self._before(entry, seen), whole=whole):
                for piece in fold_line(line, _width()):
                    print(piece)

    def _item(self, one: EntryStatus) -> ReviewItem:
        return ReviewItem([one.entry], [self._look(one.entry)])

    def _look(self, entry: HookEntry) -> Fingerprint:
        return take_fingerprint(entry, self._found.facts, self._budget)

    def _before(self, entry: HookEntry, now: Fingerprint) -> AcceptedVersion | None:
        """What is known of it as it was accepted; None if it never was, or is so still."""
        from cru.extensions.hooks.trust.copies import read_copy

        trust, about = self._found.trust, self._found.facts
        before = trust.accepted(entry)
        if before is None or trust.is_trusted(entry):
            return None
        files = {file.path: (before.files.get(relative(file.path, about)), file.digest) for file in now.files}
        old = {path: read_copy(about.home, was) for path, (was, now) in files.items() if was is not None and was != now}
        return AcceptedVersion(trust.describe_change(entry), old)


def _width() -> int:
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def _is_foreign(one: EntryStatus) -> bool:
    return one.entry.source.layer != "project" and not one.entry.source.own


def _put(text: str) -> None:
    print(one_line(text))
