"""Strict models of our own classes, for msgspec: what may stand in a file, key by key, derived from their fields."""

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec


def models(types: Mapping[Any, Any], names: Mapping[str, Any]) -> Callable[[Any], Any]:
    """What gives the model of a type: of a dataclass, in which no key may be missing and none may be added.

    `types` stand for others, such as a number with its limits for a number; `names` for those of fields of that name.
    """

    @cache
    def model(kind: Any) -> Any:
        kinds = get_args(kind)
        if is_dataclass(kind):
            fields = [(name, names.get(name) or model(hint)) for name, hint in get_type_hints(kind).items()]
            about = {"__doc__": " ".join((kind.__doc__ or "").partition("\n\n")[0].split())}
            return msgspec.defstruct(f"Stored{kind.__name__}", fields, namespace=about, forbid_unknown_fields=True)  # type: ignore[union-attr]
        if isinstance(kind, type) and issubclass(kind, Enum):
            return Literal[tuple(each.value for each in kind)]
        match get_origin(kind):
            case origin if origin is tuple and kinds[-1] is ...:
                return list[model(kinds[0])]  # type: ignore[misc]
            case origin if origin is tuple:
                return tuple[tuple(map(model, kinds))]  # type: ignore[misc]
            case origin if origin is Mapping:
                return dict[str, model(kinds[1])]  # type: ignore[misc]
            case origin if origin in (Union, UnionType):
                return Union[tuple(map(model, kinds))]  # noqa: UP007
        return types.get(kind, kind)

    return model
