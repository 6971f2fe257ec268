"""The words for who counts as a neighbour of whom."""

from difflib import get_close_matches
from enum import Enum

_ALIASES = {"unbounded": "add_or_remove_one", "bounded": "replace_one"}


class Relation(Enum):
    """How two adjacent datasets differ, in the words of the field's accounting libraries.

    Two have a second name: unbounded is add_or_remove_one, bounded is replace_one. Hyphens are underscores.

    >>> Relation.of("add-or-remove-one"), Relation.of("bounded")
    (<Relation.ADD_OR_REMOVE_ONE: 'add_or_remove_one'>, <Relation.REPLACE_ONE: 'replace_one'>)
    """

    ADD_OR_REMOVE_ONE = "add_or_remove_one"
    REPLACE_ONE = "replace_one"
    REPLACE_SPECIAL = "replace_special"
    LOCAL = "local"

    @classmethod
    def of(cls, word: "Relation | str | None") -> "Relation | None":
        """The relation with this name; None stays None (none stated, none checked)."""
        from dpaudit.errors import InvalidSpec

        if word is None or isinstance(word, Relation):
            return word
        given = word.lower().replace("-", "_") if isinstance(word, str) else ""
        try:
            return cls(_ALIASES.get(given, given))
        except ValueError:
            near = get_close_matches(given[:100], cls.words(), n=1, cutoff=0.5)
            known = ", ".join(relation.value for relation in cls)
            hint = f"; did you mean {near[0]!r}?" if near else " (or unbounded, bounded)"
            raise InvalidSpec(f"relation must be one of {known}, got {word!r}{hint}") from None

    @classmethod
    def words(cls) -> list[str]:
        """All names that relations have, with underscores."""
        return [*(relation.value for relation in cls), *_ALIASES]

    @staticmethod
    def word(relation: "Relation | None") -> str | None:
        """The name of a relation, as specs and results store it; None stays None."""
        return None if relation is None else relation.value
