"""What a run prints, through `sys.stdout` and `sys.stderr`, and what it warns of; both go on to where they went."""

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from dpaudit.outputs import REST, Outputs, token
from dpaudit.sampling.matrix import Wanted
from dpaudit.sampling.sheet import Sheet

LONGEST_PRINTED = 1 << 12  # characters of a run that are compared


class Printed(threading.local):
    """What was printed in this thread since it was last taken."""

    text = ""

    def add(self, text: Any) -> None:
        """More text; what is no text is left to the stream."""
        if type(text) is str:
            self.text = (self.text + text)[:LONGEST_PRINTED]

    def take(self) -> str:
        """The text, which is none from then on."""
        text, self.text = self.text, ""
        return text


PRINTED = Printed()
_LOCK = threading.Lock()
_BEFORE: list[Any] = []  # what was there before the threads that listen began, one entry for each of them
_SHOWN: set[tuple[Any, ...]] = set()  # warnings that were shown while somebody listened


class _Stream:
    """A stream that keeps what goes through it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        PRINTED.add(text)
        return self._stream.write(text)  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def listening(wanted: Wanted) -> Iterator[bool]:
    """Keeps what is printed in `PRINTED` where the rest of outputs is asked for; whether it does."""
    if wanted is not None and (REST,) not in wanted:
        yield False
        return
    with _LOCK:
        if not _BEFORE:
            _BEFORE.append((sys.stdout, sys.stderr, kept := warnings.catch_warnings()))
            kept.__enter__()
            warnings.simplefilter("always", append=True)  # Python tells of a warning once, and so of one run alone
            warnings.showwarning = partial(_warned, warnings.showwarning)
            # a closed stream is None, which print passes over in silence
            sys.stdout, sys.stderr = (each and _Stream(each) for each in (sys.stdout, sys.stderr))
        else:
            _BEFORE.append(_BEFORE[0])
    PRINTED.take()
    try:
        yield True
    finally:
        with _LOCK:
            out, err, kept = _BEFORE.pop()
            if not _BEFORE:
                kept.__exit__(None, None, None)
                sys.stdout = out if isinstance(sys.stdout, _Stream) else sys.stdout
                sys.stderr = err if isinstance(sys.stderr, _Stream) else sys.stderr


def _warned(show: Any, message: Any, category: Any, filename: str, lineno: int, *more: Any, **named: Any) -> None:
    before, text = PRINTED.take(), f"{category.__name__}: {message}"
    if (text, filename, lineno) not in _SHOWN:
        _SHOWN.add((text, filename, lineno))
        show(message, category, filename, lineno, *more, **named)
    PRINTED.text = ""  # and not as it is shown
    PRINTED.add(before + text)


def with_printed(outputs: Outputs, text: str) -> Outputs:
    """The outputs of a call that printed this: it joins what has no column."""
    sheet = Sheet(outputs.runs, frozenset({(REST,)}))
    sheet.add_rest((), None, outputs.column((REST,)).tokens ^ np.uint64(token("printed", text).code), "print")
    rest, notes = sheet.outputs(), {f"{REST} print": "what a run prints or warns of"}
    columns = {**{path: outputs.columns[path] for path in outputs.columns}, (REST,): rest.column((REST,))}
    labels = {**outputs.labels, **rest.labels}
    return Outputs(outputs.runs, columns, labels, outputs.complete, outputs.unseen, {**outputs.notes, **notes})
