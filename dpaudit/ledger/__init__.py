"""The record of audits in one SQLite file: results, their history and comparison, accepted findings, shards."""
