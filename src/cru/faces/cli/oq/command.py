"""`cru oq`: the jq language over JSON, YAML, TOML and TOON, in files and pipes."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cru.core.api.jq import compile_filter
from cru.core.base.process.forked import fork_deaf, limit_memory
from cru.core.base.values.errors import CruError
from cru.faces.cli.console import complain
from cru.faces.cli.flags import Parsed
from cru.faces.cli.oq.inputs import BadInput, Document, read_documents
from cru.faces.cli.oq.options import OqOptions, read_options
from cru.faces.cli.oq.results import NotWritable, Results
from cru.features.formats.convert import is_json
from cru.features.formats.json_stream import JsonText

if TYPE_CHECKING:
    import jaq

INPUT_FAILED, FILTER_FAILED = BadInput.code, NotWritable.code
FALSE, NOTHING = 1, 4
_OFFSET = re.compile(r"byte offset (\d+): (.*)", re.S)
SECONDS = 60
"""Of the processor, for the filter on one document. jaq reads gigabytes in that time."""
MEMORY = 4 << 30
"""Bytes beyond what the process has already."""
OVERFLOWS = (signal.SIGSEGV, signal.SIGBUS)


TOO_MUCH = f"the filter was ended: it needs more memory than there is, or than {MEMORY >> 30} GiB"


class FilterFailed(CruError):
    """The filter raised an error, or brought its process down."""

    code = FILTER_FAILED


def command(parsed: Parsed, words: tuple[str, ...]) -> int:
    """The management command; raises UsageProblem if the words do not fit it."""
    options = read_options(words)
    if options is None:
        return 0
    sys.stdout.flush()
    pid = _fork()
    if pid:
        return _wait(pid)
    limit_memory(MEMORY)
    try:
        return FilterRun(options).run()
    except MemoryError as error:
        raise FilterFailed(TOO_MUCH) from error


def _fork() -> int:
    """A process of its own for the filter, which may overflow the stack. It ends with this one, and at Ctrl-C at once: while a filter
    runs, Python hears nothing."""
    read, write = os.pipe()
    pid = fork_deaf()
    if pid:
        os.close(read)
        return pid
    os.close(write)
    if sys.platform == "linux":  # SIGIO comes when nobody has the other end any more, and ends this
        fcntl.fcntl(read, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(read, fcntl.F_SETFL, os.O_ASYNC)
        if select.select([read], [], [], 0)[0]:  # the other process had gone before: no SIGIO comes
            os._exit(128 + signal.SIGIO)
    return 0


def _wait(pid: int) -> int:
    """The exit status of the filter's process. Raises FilterFailed if it broke down."""
    _, status = os.waitpid(pid, 0)
    if not os.WIFSIGNALED(status):
        return os.WEXITSTATUS(status)
    number = os.WTERMSIG(status)
    if number in OVERFLOWS:
        raise FilterFailed("the filter calls itself without end, or what it works on is nested too deep")
    if number == signal.SIGPROF:
        raise FilterFailed(f"the filter was ended: it took more than {SECONDS} seconds for one document")
    if number in (signal.SIGKILL, signal.SIGABRT):
        raise FilterFailed(TOO_MUCH)
    return 128 + number


class FilterRun:
    """One call of the command.

    status: the exit status so far
    """

    def __init__(self, options: OqOptions) -> None:
        self._options = options
        self._variables: dict[str, Any] = {"ENV": {}, **options.variables}
        self._filter: jaq.Filter = compile_filter("cru oq", options.filter, list(options.variables))
        self._results = Results(options)
        self.status = 0

    def run(self) -> int:
        for document in self._inputs():
            try:
                self._apply(document)
            except CruError as error:
                self._tell(error)
        if self.status or not self._options.exit_status:
            return self.status
        return {None: NOTHING, "false": FALSE, "null": FALSE}.get(self._results.last, 0)

    def _inputs(self) -> Iterator[Document]:
        if self._options.null_input:
            return iter([Document("null")])
        return iter([self._slurped()]) if self._options.slurp else self._documents()

    def _documents(self) -> Iterator[Document]:
        """Those of all files; a file that cannot be read further is told, and the next one follows."""
        for path in self._options.files or ["-"]:
            try:
                yield from read_documents(path, self._options.input)
            except BadInput as error:
                self._tell(error)

    def _slurped(self) -> Document:
        """All of them as one array, those left out that cannot be read."""
        texts = []
        for document in self._documents():
            try:
                texts.append(_text(document))
            except CruError as error:
                self._tell(error)
        return Document("all documents", JsonText(b"[" + b",".join(texts) + b"]"))

    def _apply(self, document: Document) -> None:
        """Print every result for one document. Raises CruError."""
        # no handler: jaq does not return to Python before it is done, and the signal ends the process
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        results = _evaluate(self._filter, document, self._variables)
        signal.setitimer(signal.ITIMER_PROF, 0)
        for result in results.split("\n") if results else ():
            self._results.print(result)
        if not self._options.files:
            sys.stdout.flush()  # who writes into the pipe may take its time with the next one

    def _tell(self, error: CruError) -> None:
        sys.stdout.flush()
        complain(error.message, error.hint)
        self.status = error.code


def _text(document: Document) -> bytes:
    """Its JSON. Raises BadInput."""
    if document.text is not None and is_json(document.text.data):
        return document.text.data
    import jaq

    return _evaluate(jaq.compile("."), document, {}).encode()


def _evaluate(filter: jaq.Filter, document: Document, variables: dict[str, Any]) -> str:
    """The results, each as JSON on a line of its own. Raises BadInput and FilterFailed."""
    import jaq

    try:
        if document.text is None:
            return filter.text(document.value, vars=variables)
        return filter.text(document.text.data, text=True, vars=variables)
    except jaq.ParseError as error:
        match = _OFFSET.fullmatch(str(error))
        raise document.bad(int(match[1]), match[2]) if match else BadInput(f"{document.place}: {error}") from error
    except jaq.JaqError as error:
        problem = str(error).strip().removeprefix("Error: ") or "the filter failed"
        raise FilterFailed(f"{document.place}: {problem}") from error
