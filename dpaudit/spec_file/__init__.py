"""The TOML spec: what to audit, as a file. Reading and checking one imports nobody's code."""

from dpaudit.spec_file.files import find_specs
from dpaudit.spec_file.questions import Question, Wishes, read_spec
from dpaudit.spec_file.settings import Settings, read_settings

__all__ = ["Question", "Settings", "Wishes", "find_specs", "read_settings", "read_spec"]
