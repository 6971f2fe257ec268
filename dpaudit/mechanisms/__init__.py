"""What runs: plain functions, batched functions, factories and external programs, behind one protocol."""

from dpaudit.mechanisms.command import Command as Command
from dpaudit.mechanisms.command import command as command
from dpaudit.mechanisms.functions import Batched as Batched
from dpaudit.mechanisms.functions import BuiltBy as BuiltBy
from dpaudit.mechanisms.functions import Imported as Imported
from dpaudit.mechanisms.functions import PerRun as PerRun
from dpaudit.mechanisms.functions import batched as batched
from dpaudit.mechanisms.functions import built_by as built_by
from dpaudit.mechanisms.functions import wrap as wrap
from dpaudit.mechanisms.protocol import Description as Description
from dpaudit.mechanisms.protocol import Mechanism as Mechanism
from dpaudit.mechanisms.protocol import Opened as Opened
