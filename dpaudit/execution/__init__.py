"""Shards in, merged integers out: the engine, what it keeps, and the time it has."""
