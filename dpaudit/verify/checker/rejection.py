"""The one error of the checker: which obligation failed, and where it fails."""

from __future__ import annotations

from dpaudit.errors import DpAuditError


class ProofRejected(DpAuditError):
    """A stored proof does not show what it says: the message names the obligation, and a state that breaks it.

    That the program breaks its claim does not follow; another proof may exist.
    """

    exit_code = 1
