"""`cru hooks review`: what awaits trust is shown with everything that it names, and a person says yes or no to each."""

from __future__ import annotations

import os
import shutil
import sys
from itertools import groupby
from typing import NamedTuple

from cru.core.hooks.errors import NoEntry
from cru.core.hooks.inventory import HookInventory
from cru.core.hooks.model.entry import HookEntry, too_long
from cru.core.hooks.model.status import Activation, EntryStatus, MissingHook
from cru.core.hooks.report.runnable import find_broken
from cru.core.hooks.trust.copies import read_copy
from cru.core.hooks.trust.files import LookupBudget
from cru.core.hooks.trust.fingerprint import Fingerprint, relative, take_fingerprint
from cru.core.hooks.trust.store import judge_missing
from cru.faces.cli.arguments import CommandArguments
from cru.faces.cli.console import one_line
from cru.faces.cli.flags import Parsed, UsageProblem
from cru.faces.cli.hooks.display import AcceptedVersion, fold_line, render_hook, render_missing
from cru.faces.cli.hooks.inventory import load_inventory, update_hook_list
from cru.faces.cli.run_options import home_path
from cru.faces.cli.terminal.keyboard import ask_line

SHORTER = "a hook that names fewer files and folders can be: put the rest into a script"
KEYS = "t trust · r refuse · s skip · a trust all of this file · m show files whole · ? help · q quit"
WORDS = {"trust": "t", "refuse": "r", "skip": "s", "all": "a", "quit": "q"}
"""What may be typed in place of a key; other words that begin as one are none."""


ABOUT_KEYS = {
    "t": "it runs from now on, as it is shown here; when it or one of its files changes, you are asked again",
    "r": "it does not run, and you are not asked again until it changes",
    "s": "not now: it does not run, and waits for the next `cru hooks review`",
    "a": "trust this one and what follows of the same file; each is shown",
    "m": "show its files to their end, then ask again",
    "q": "leave; what has no answer waits",
    "": "Enter ends an answer: what is accepted runs with your rights, so a slip of one key shall not do it",
}


class ReviewItem(NamedTuple):
    """Something to say yes or no to: one hook of a project, all hooks of one program's own files, or that an accepted one is not there as
    it was."""

    entries: list[HookEntry]
    fingerprints: list[Fingerprint]
    dialect: str = ""
    missing: MissingHook | None = None

    @property
    def path(self) -> str:
        return self.missing.file if self.missing is not None else os.path.realpath(self.entries[0].source.path)

    @property
    def word(self) -> str:
        """What a person writes to accept it."""
        if self.missing is not None:
            return _id(self.missing)
        return self.dialect or f"{self.entries[0].id}@{self.fingerprints[0].digest}"


def _id(missing: MissingHook) -> str:
    """Of one definition in one file: nothing can come after the look."""
    return f"gone-{judge_missing(missing)[0][:16]}"


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """Raises UsageProblem, NoEntry, NotStored and ConfigError."""
    ids_by_flag = _parse_words(words)
    inventory = load_inventory(parsed)
    review = Review(parsed, inventory)
    if ids_by_flag:
        trusted = [review.find_seen(word) for word in ids_by_flag.get("--trust", ())]
        refused = [review.find(word) for word in ids_by_flag.get("--refuse", ())]
        for item in trusted:
            review.judge(item, accepted=True)
        for item in refused:
            review.judge(item, accepted=False)
        return 0
    review.mention_trust()
    items = review.waiting()
    if not items:
        _print_line("no hook awaits trust")
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


def _parse_words(words: tuple[str, ...]) -> dict[str, list[str]]:
    """The ids behind --trust and --refuse; with "all of it" nobody would have looked, so each is named."""
    ids_by_flag: dict[str, list[str]] = {}
    flag = ""
    for word in words:
        if word in ("--trust", "--refuse"):
            flag = word
            ids_by_flag.setdefault(flag, [])
        elif flag and not word.startswith("-"):
            ids_by_flag[flag].append(word)
        else:
            args = CommandArguments(
                "hooks", ("review", word), switches=("--trust", "--refuse"), verbs=("review",), most=2
            )
            raise args.unknown(word)
    empty = next((flag for flag, ids in ids_by_flag.items() if not ids), "")
    if empty:
        raise UsageProblem(f"{empty} needs an id", "cru hooks list shows them")
    return ids_by_flag


class Review:
    """Shows and notes. Everything is shown with control characters made visible, on whatever it is shown."""

    def __init__(self, parsed: Parsed, inventory: HookInventory) -> None:
        self._inventory = inventory
        self._config = home_path(parsed) / "config.toml"
        self._budget = LookupBudget()

    def waiting(self) -> list[ReviewItem]:
        loaded = self._inventory.loaded
        items = [self._item(status) for status in loaded.of(Activation.UNTRUSTED)]
        items += [ReviewItem([], [], missing=hook) for hook in loaded.missing]
        foreign = sorted(loaded.of(Activation.NOT_ACCEPTED), key=lambda status: status.entry.dialect)
        for dialect, group in groupby(foreign, key=lambda status: status.entry.dialect):
            items.append(ReviewItem([status.entry for status in group], [], dialect))
        return items

    def mention_trust(self) -> None:
        """The settings and plugins of a project are another matter."""
        facts = self._inventory.facts
        path = facts.root / ".cru" / "config.toml"
        if (
            path.is_file()
            and path.parent.resolve() != facts.home.resolve()
            and not self._inventory.trust.store.is_trusted(path)
        ):
            _print_line(f"{path} is not trusted either: `cru trust`")

    def find_seen(self, word: str) -> ReviewItem:
        """What is to be trusted, if it is still what the word says: ID@DIGEST, as the review shows it. Raises NoEntry and UsageProblem."""
        name, _, digest = word.partition("@")
        item = self.find(name)
        if item.missing is not None or item.dialect or digest == item.fingerprints[0].digest:
            return item
        self.show(item, whole=True)
        why = "is not what it was when it was shown" if digest else "says nothing of the content you have seen"
        raise UsageProblem(
            f"nothing is accepted: {name} {why}", f"read it again, as it is shown above; then: {_how_to_trust([item])}"
        )

    def find(self, word: str) -> ReviewItem:
        """What an id, or the name of a program, stands for. Raises NoEntry."""
        missing = next((hook for hook in self._inventory.loaded.missing if word == _id(hook)), None)
        if missing is not None:
            return ReviewItem([], [], missing=missing)
        entries = [
            status.entry
            for status in self._inventory.loaded.known
            if _is_foreign(status) and status.entry.dialect == word
        ]
        if entries:
            return ReviewItem(entries, [], word)
        status = self._inventory.loaded.find(word)
        if status.entry.source.own and not status.entry.of_project:
            raise NoEntry(f"{status.entry.id} is your own and needs no trust", f"cru hooks disable {status.entry.id}")
        return self._item(status)

    def judge(self, item: ReviewItem, *, accepted: bool) -> None:
        """Note it, and that what an entry took the place of has been seen. All hooks of a program are turned on in config.toml; refusing
        notes each of them."""
        if item.missing is not None:
            if accepted:
                self._inventory.trust.settle([item.missing])
            _print_line(f"{item.word}: {'it may be so' if accepted else 'told again: put it back, or accept it'}")
            return
        fingerprints = item.fingerprints or [self._take_fingerprint(entry) for entry in item.entries]
        oversized = next((entry for entry, seen in zip(item.entries, fingerprints, strict=True) if seen.over), None)
        if accepted and oversized is not None and not item.dialect:
            raise UsageProblem(f"{oversized.id} names more files than cru looks at, so it is not accepted", SHORTER)
        if item.dialect and accepted:
            update_hook_list(self._config, "dialects", item.dialect, is_listed=True)
        self._inventory.trust.judge(list(zip(item.entries, fingerprints, strict=True)), accepted=accepted)
        self._inventory.trust.settle(self._replaced(item))
        verb = "trusted as shown" if accepted else "refused, until it changes"
        for entry in item.entries:
            _print_line(f"{entry.id} is {verb}")
            for trouble in self._find_broken(entry) if accepted else ():
                _print_line(f"{entry.id} does not work as it stands: {trouble}")

    def _find_broken(self, entry: HookEntry) -> list[str]:
        """Why it will not run although it is accepted: a script that is not there, for one."""
        if problem := entry.problem or too_long(entry):
            return [problem]
        launch = self._inventory.dialects[entry.dialect].launch
        broken = find_broken(entry, launch, self._inventory.facts)
        return [f"{text} ({hint})" if hint else text for certain, text, hint in broken if certain]

    def _replaced(self, item: ReviewItem) -> list[MissingHook]:
        """What was accepted earlier of the same file and name, and is not there any more as it was."""
        names = {(item.path, entry.label) for entry in item.entries}
        return [hook for hook in self._inventory.missing if (hook.file, hook.label) in names]

    # at a terminal ----------------------------------------------------------------------------------------------------------------

    def ask(self, items: list[ReviewItem]) -> int:
        whole_file = None
        for number, item in enumerate(items, 1):
            path = item.path
            print(f"\n{number} of {len(items)}")
            self.show(item)
            key = "t" if whole_file == path and not item.dialect else self._read_key(item)
            if key == "q":
                return 0
            if key == "a":
                whole_file = path
            if key in ("t", "a"):
                self.judge(item, accepted=True)
            elif key == "r":
                self.judge(item, accepted=False)
        return 0

    def _read_key(self, item: ReviewItem) -> str:
        while True:
            line = ask_line(f"{KEYS} > ")
            if not line:
                return "q"
            word = line.strip().lower()
            key = WORDS.get(word, word)
            if key == "m":
                self.show(item, whole=True)
            elif key in ("?", "help"):
                for name, text in ABOUT_KEYS.items():
                    print(f"  {name:<2} {text}")
            elif key in WORDS.values():
                return key
            elif key:
                print(f"`{one_line(word, 40)}` is no answer", file=sys.stderr)

    def show(self, item: ReviewItem, *, whole: bool = False) -> None:
        if item.missing is not None:
            for line in render_missing(item.missing, item.word):
                for piece in fold_line(line, _width()):
                    print(piece)
        if item.dialect:
            _print_line(f"{item.dialect}: hooks of your own files, which are off here until you turn them on")
        fingerprints = item.fingerprints or [self._take_fingerprint(entry) for entry in item.entries]
        for entry, seen in zip(item.entries, fingerprints, strict=True):
            broken = [] if seen.over else self._find_broken(entry)
            for line in render_hook(entry, seen, self._accepted_version(entry, seen), broken, whole=whole):
                for piece in fold_line(line, _width()):
                    print(piece)

    def _item(self, status: EntryStatus) -> ReviewItem:
        return ReviewItem([status.entry], [self._take_fingerprint(status.entry)])

    def _take_fingerprint(self, entry: HookEntry) -> Fingerprint:
        return take_fingerprint(entry, self._inventory.facts, self._budget)

    def _accepted_version(self, entry: HookEntry, now: Fingerprint) -> AcceptedVersion | None:
        """What is known of it as it was accepted; None if it never was, or is so still."""
        trust, facts = self._inventory.trust, self._inventory.facts
        before = trust.accepted(entry)
        if before is None or trust.is_trusted(entry):
            return None
        files = {file.path: (before.files.get(relative(file.path, facts)), file.digest) for file in now.files}
        old = {path: read_copy(facts.home, was) for path, (was, now) in files.items() if was is not None and was != now}
        return AcceptedVersion(trust.describe_change(entry), old)


def _width() -> int:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def _is_foreign(status: EntryStatus) -> bool:
    return status.entry.source.layer != "project" and not status.entry.source.own


def _print_line(text: str) -> None:
    print(one_line(text))
