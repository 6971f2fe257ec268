"""The TOML spec: what to audit, as a file. Reading and checking one imports nobody's code."""
