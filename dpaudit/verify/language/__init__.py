"""The language that proofs are made for: a subset of Python, read into a small tree."""

from dpaudit.verify.language.doubles import rounded
from dpaudit.verify.language.outline import OutsideLanguage
from dpaudit.verify.language.parse import read, read_source
from dpaudit.verify.language.words import expression, text

__all__ = ["OutsideLanguage", "expression", "read", "read_source", "rounded", "text"]
