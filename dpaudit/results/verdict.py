"""The two verdicts. There is no third word: "not refuted" is not "private"."""

from enum import Enum


class Verdict(Enum):
    """What an audit says of a claim; derived from the certificate, never stored beside it."""

    REFUTED = "REFUTED"
    NOT_REFUTED = "NOT_REFUTED"
