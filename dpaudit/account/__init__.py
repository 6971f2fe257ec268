"""Every sentence a user reads about a result: pure functions of `AuditResult` and `SuiteResult`.

Contract: numbers are rounded towards safety (lower bounds down, p-values and detectable losses up), text
that came from a user is made harmless, and all formats print these same sentences.
"""
