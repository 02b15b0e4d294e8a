"""Frozen value classes that cost nothing to import.

`dataclasses` takes 17 ms to import (it pulls in inspect and re) and the path to exec has 10 ms in all, so values on
that path are declared with `@frozen`. To a type checker it *is* `dataclass(frozen=True)`; at run time it builds the
same `__init__`, equality, hash and repr from the class's annotations, in declaration order.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar, dataclass_transform

    T = TypeVar("T")

    @dataclass_transform(frozen_default=True)
    def frozen(cls: type[T]) -> type[T]: ...

    def copy_with(value: T, /, **fields: object) -> T: ...
else:

    def frozen(cls):
        """Make *cls* a frozen value class; class attributes are the defaults of the fields of the same name."""
        fields = tuple(cls.__dict__.get("__annotations__", ()))  # noqa: RUF063 (inspect costs more than the class)
        defaults = {name: cls.__dict__[name] for name in fields if name in cls.__dict__}

        blank = {name: defaults.get(name, frozen) for name in fields}  # in declaration order, which `vars` keeps
        last = tuple(defaults.values())
        required = len(fields) - len(last)  # which come first

        def __init__(self, *args, **kwargs):
            if len(args) == len(fields) and not kwargs:  # names and verdicts are made for every query
                self.__dict__.update(zip(fields, args))  # noqa: B905 (their number was compared)
                return
            if required <= len(args) <= len(fields) and not kwargs:
                self.__dict__.update(zip(fields, args + last[len(args) - required :], strict=True))
                return
            if len(args) > len(fields):
                raise TypeError(f"{cls.__name__} takes {len(fields)} values, got {len(args)}")
            values = {**blank, **dict(zip(fields, args, strict=False)), **kwargs}
            missing = [name for name in fields[:required] if values[name] is frozen]
            if missing or len(values) != len(fields):
                unknown = [name for name in values if name not in fields]
                raise TypeError(f"{cls.__name__}: missing {missing}, unknown {unknown}")
            self.__dict__.update(values)

        def __setattr__(self, name, value):
            raise AttributeError(f"{cls.__name__} is frozen: cannot set {name}")

        def __eq__(self, other):
            return self.__dict__ == other.__dict__ if type(other) is cls else NotImplemented

        def __hash__(self):
            return hash(tuple(self.__dict__[name] for name in fields))

        def __repr__(self):
            return f"{cls.__name__}({', '.join(f'{name}={self.__dict__[name]!r}' for name in fields)})"

        for method in (__init__, __setattr__, __eq__, __hash__, __repr__):
            setattr(cls, method.__name__, method)
        cls.__match_args__ = fields
        return cls

    def copy_with(value, /, **fields):
        """A record like *value*, with other *fields*."""
        return type(value)(**{**vars(value), **fields})
