"""Every sentence a user reads about a finding, told once: an `Account` of sections by level.

Contract: numbers are rounded towards safety (lower bounds down, p-values and detectable losses up), text
that came from a user is made harmless, and all formats print these same sentences. `account(finding)` tells audits,
their entries in a suite, suites, brackets, comparisons and records of noise; rooms above register what is theirs.
"""

from dpaudit.account import audit, bracketed, change, suites
from dpaudit.account.section import Account, Level, Section, Table, Topic, account

__all__ = ["Account", "Level", "Section", "Table", "Topic", "account", "audit", "bracketed", "change", "suites"]
