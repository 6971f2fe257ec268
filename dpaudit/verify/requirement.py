"""The two libraries of the extra [verify], loaded on first use, with a clear message where one is missing."""

from importlib import import_module
from types import ModuleType

from dpaudit.installed import lacking


def flint() -> ModuleType:
    """python-flint: ball arithmetic. Raises `MissingRequirement` where it is not installed.

    >>> flint().arb(2) > 1
    True
    """
    return _loaded("flint", "python-flint", "rigorous enclosures")


def z3() -> ModuleType:
    """z3: linear arithmetic over the reals. Raises `MissingRequirement` where it is not installed.

    >>> z3().IntVal(2).as_long()
    2
    """
    return _loaded("z3", "z3-solver", "proofs and their checker")


def _loaded(module: str, package: str, what: str) -> ModuleType:
    try:
        return import_module(module)
    except ImportError as error:
        raise lacking(f"{what} need {package}, which is not installed here", "verify") from error
