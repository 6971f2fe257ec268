"""Errors a user can act on: each message is one line that names the place, the value and the cure.

The exit codes are those of the command line, worst first: 70 internal, 2 usage, 1 refuted, 3 no verdict,
4 underpowered, 5 nothing audited.
"""

from collections.abc import Iterator
from contextlib import contextmanager


class DpAuditError(Exception):
    """Base of every error that `dpaudit` raises on purpose."""

    exit_code = 70


@contextmanager
def at(place: str) -> Iterator[None]:
    """Puts the place before the message of an error that passes through."""
    try:
        yield
    except DpAuditError as error:
        raise type(error)(*(f"{place}: {each}" for each in error.args)) from None


class InvalidSpec(DpAuditError, ValueError):
    """The question itself is wrong: a bad value, an unknown key, equal datasets. Cure: change the spec.

    Of a file, `args` hold a message for each thing that is wrong.
    """

    exit_code = 2

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


class UnsoundAudit(DpAuditError):
    """The experiment broke, so there is no verdict: a changed dataset, a lost worker, nonsense from a batch."""

    exit_code = 3


class OutOfTime(UnsoundAudit):
    """The time of an audit was over before what it needs was done. Cure: give more `max_time_s`."""

    def __init__(self, message: str = "max_time_s was over before enough was done for a verdict: give more time"):
        super().__init__(message)


class MissingRequirement(UnsoundAudit):
    """Something the audit needs is not installed here. Cure: install it as the message says."""


class NotAttested(DpAuditError):
    """A result is not what the holder of a key attested. Cure: the file that was attested, or the right key."""

    exit_code = 1


class ClaimRefuted(DpAuditError, AssertionError):
    """A claim was refuted; raised by `AuditResult.raise_if_refuted`, so that a test fails with the witness.

    `bound` is the finding in a few words, such as `epsilon >= 1.98 > 1`.
    """

    exit_code = 1

    def __init__(self, message: str, bound: str = "") -> None:
        super().__init__(message)
        self.bound = bound


class Interrupted(BaseException):
    """A real Ctrl-C, told from a KeyboardInterrupt that a mechanism raises."""
