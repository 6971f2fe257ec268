"""Test modules in other processes: what they define travels by value, for no worker could import them as pytest did."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from dpaudit.errors import InvalidSpec

EVERYWHERE = {"builtins", "dpaudit"}  # named by every pickled function, whatever it uses


@contextmanager
def by_value(modules: Iterable[ModuleType], mechanism: Any) -> Iterator[None]:
    """While it lasts, functions and classes of these modules are pickled whole, and not as a name to import.

    Where the mechanism cannot be pickled so (it uses something of its module that has to stay where it is), its module
    is left to be imported.
    """
    import cloudpickle

    known = cloudpickle.list_registry_pickle_by_value()
    ours = {module.__name__: module for module in modules if sys.modules.get(module.__name__) is module}
    added = [module for name, module in ours.items() if name not in known]
    for module in added:
        cloudpickle.register_pickle_by_value(module)
    try:
        try:
            cloudpickle.dumps(mechanism)
        except Exception:
            while added:
                cloudpickle.unregister_pickle_by_value(added.pop())
        yield
    finally:
        for module in added:
            cloudpickle.unregister_pickle_by_value(module)


def check_patches(patches: Any, modules: Iterable[ModuleType], mechanism: Any) -> None:
    """Raises `InvalidSpec` where pytest's monkeypatch has changed a module that the mechanism uses by its name.

    A worker imports that module as it is on disk: the audit would be one of other code than the test means. Modules
    that travel by value take their changes along. Only names that the pickled mechanism holds itself are looked at,
    a package and its modules taken as one.
    """
    changed = [(target, name) for target, name, _ in getattr(patches, "_setattr", ())]
    if not changed:
        return
    import pickletools

    import cloudpickle

    try:
        sent = cloudpickle.dumps(mechanism)
    except Exception:  # told in other words where it has to be sent
        return
    texts = [argument for _, argument, _ in pickletools.genops(sent) if isinstance(argument, str)]
    used = {text.partition(".")[0] for text in texts} - EVERYWHERE
    ours = {module.__name__ for module in modules}
    for target, name in changed:
        if not isinstance(target, ModuleType | type):
            continue  # an object travels as it is
        where = target.__name__ if isinstance(target, ModuleType) else target.__module__
        if where not in ours and where.partition(".")[0] in used:
            raise InvalidSpec(
                f"monkeypatch has changed {where}.{name} in this process, and a mechanism runs in one of its own, where"
                " it is as before; hand the change over as an argument (functools.partial), or make it in the mechanism"
            )
