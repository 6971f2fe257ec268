"""The words for who counts as a neighbour of whom."""

from __future__ import annotations

from enum import Enum


class Relation(Enum):
    """How two adjacent datasets differ, in the words of the field's accounting libraries.

    >>> Relation.of("add_or_remove_one")
    <Relation.ADD_OR_REMOVE_ONE: 'add_or_remove_one'>
    """

    ADD_OR_REMOVE_ONE = "add_or_remove_one"
    REPLACE_ONE = "replace_one"
    REPLACE_SPECIAL = "replace_special"
    LOCAL = "local"

    @classmethod
    def of(cls, word: Relation | str | None) -> Relation | None:
        """The relation with this name; None stays None (none stated, none checked)."""
        from dpaudit.errors import InvalidSpec

        if word is None or isinstance(word, Relation):
            return word
        try:
            return cls(word)
        except ValueError:
            known = ", ".join(relation.value for relation in cls)
            raise InvalidSpec(f"relation must be one of {known}, got {word!r}") from None

    @staticmethod
    def word(relation: Relation | None) -> str | None:
        """The name of a relation, as specs and results store it; None stays None."""
        return None if relation is None else relation.value
