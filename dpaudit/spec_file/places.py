"""Where a key of a spec file stands: its line, for messages alone, found once something is wrong."""

from contextlib import suppress
from dataclasses import dataclass

from dpaudit.errors import InvalidSpec
from dpaudit.results.files import read_bytes
from dpaudit.results.strict import LARGEST_FILE, Keys, lines_of


@dataclass(frozen=True, slots=True)
class SpecPlace:
    """A table of a file: the keys that lead to it, and what messages call it."""

    file: str
    keys: Keys = ()
    called: str = ""

    def line(self, *keys: str | int) -> str:
        """The file, and the line of a key of this table, or of the table where it has no such key."""
        lines: dict[Keys, int] = {}
        with suppress(InvalidSpec, UnicodeDecodeError):  # it has changed since it was read
            lines = lines_of(read_bytes(self.file, LARGEST_FILE).decode("utf-8-sig"))
        path = (*self.keys, *keys)
        found = next((lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in lines), None)
        return self.file if found is None else f"{self.file}: line {found}"

    def says(self, message: object, *keys: str | int) -> str:
        """A message with its place before it."""
        return ": ".join(filter(None, (self.line(*keys), self.called, str(message))))
