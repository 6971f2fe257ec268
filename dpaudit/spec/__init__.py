"""The TOML spec: what to audit, as a file. Reading and checking one imports no code of users."""
