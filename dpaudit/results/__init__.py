"""What was found: witness, result, suite, verdict, upper bound and bracket; their stored forms, every sentence."""
