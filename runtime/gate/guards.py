"""What a script gets instead of getattr, type, vars and their like: the checks of run time.

SAFETY: a script holds these functions, so that nothing powerful stands in this module: no module
that leads out, no importer, no stream. They take attribute names only as exact `str`: a subclass
could answer the check with one name and the load with another.
"""

from __future__ import annotations

from collections.abc import Callable
from io import IOBase
from types import DynamicClassAttribute, MappingProxyType, ModuleType
from typing import Any, Never, get_origin

from . import names, templates
from .kinds import (
    TYPE,
    StandIn,
    is_looked_at,
    is_script_class,
    owner,
    shown_class,
    shown_type,
    speaks_for_itself,
)

_MISSING, _ABSENT = object(), object()
_PRIVATE = names.PREFIX + "_"


def attribute_name(name: Any, *, store: bool = False) -> str:
    """The compiled form of an attribute name that was computed; AttributeError if refused."""
    if type(name) is not str:
        raise TypeError(f"attribute name must be a plain string, not {type(name).__name__!r}")
    if name.startswith(_PRIVATE):
        return name
    problem = names.attribute_problem(name, store=store)
    if problem:
        raise AttributeError(f"the attribute {name!r} is not available: {problem}")
    return names.private(name) if names.is_private(name) else name


def load(value: Any, name: Any) -> Any:
    """`value.name` with a computed name."""
    if type(name) is str:
        if name == "__class__":
            return shown_type(value)
        if name == "__dict__":
            return guarded_vars(value)
    name = attribute_name(name)
    if name in names.COMPUTED:
        return attribute(value, name)
    try:
        return getattr(value, name)
    except AttributeError as error:
        raise _shown(error) from None


def attribute(value: Any, name: str) -> Any:
    """`value.format` and the other names that need a look at what they find."""
    cls = owner(value)
    if name in ("obj", "raw", "detach") and not speaks_for_itself(cls):
        raise AttributeError(f"the attribute {name!r} of {cls.__name__!r} is not available")
    found = getattr(value, name)
    # SAFETY: by what was found, since an alias shows it as its own. It opens a raw file anew, by
    # any path or descriptor; it renames a module.
    if name == "__init__" and _is_maker_of(found, IOBase | ModuleType | StandIn):
        raise AttributeError("the objects of this class cannot be made anew")
    if name == "__getattr__":
        return _asking(found)
    if isinstance(found, ModuleType):
        raise AttributeError(f"the attribute {name!r} is not available: it is a module")
    return templates.guard(found, load)


def _is_maker_of(method: Any, kinds: Any) -> bool:
    bound = getattr(method, "__self__", None)
    return isinstance(bound, kinds) and not is_script_class(type(bound))


def _asking(method: Any) -> Callable[..., Any]:
    """`__getattr__` of a value or of a class, which takes the name as its last argument.

    SAFETY: the library's (a generic alias's, a temporary file's) look up whatever they are told.
    """

    def __getattr__(*arguments: Any) -> Any:  # noqa: N807
        *before, name = arguments
        return method(*before, attribute_name(name))

    return __getattr__


def _shown(error: AttributeError) -> AttributeError:
    return AttributeError(names.shown(str(error)))


def guarded_getattr(value: Any, name: Any, default: Any = _MISSING, /) -> Any:
    """getattr."""
    if default is _MISSING:
        return load(value, name)
    try:
        return load(value, name)
    except AttributeError:
        return default


def guarded_hasattr(value: Any, name: Any, /) -> bool:
    """hasattr."""
    return guarded_getattr(value, name, _ABSENT) is not _ABSENT


def guarded_setattr(value: Any, name: Any, new: Any, /) -> None:
    """setattr."""
    setattr(value, attribute_name(name, store=True), new)


def guarded_delattr(value: Any, name: Any, /) -> None:
    """delattr."""
    delattr(value, attribute_name(name, store=True))


def object_setattr(value: Any, name: Any, new: Any, /) -> None:
    """object.__setattr__: how a frozen dataclass sets its own fields."""
    object.__setattr__(value, attribute_name(name, store=True), new)


def guarded_dir(value: Any, /) -> list[str]:
    """dir, without the names that a script could not use."""
    return sorted(
        names.shown(name)
        for name in dir(value)
        if not name.startswith("_") or name.startswith(_PRIVATE)
    )


class Attributes(dict[str, Any]):
    """`vars(x)`: a copy that writes through, under the names that the script knows."""

    __slots__ = ("_real",)

    def __init__(self, real: dict[str, Any]) -> None:
        super().__init__(
            (names.shown(key), value)
            for key, value in real.items()
            if type(key) is str and (key[:1] != "_" or key.startswith(_PRIVATE))
        )
        self._real = real

    def __setitem__(self, key: str, value: Any) -> None:
        self._real[attribute_name(key, store=True)] = value
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        del self._real[attribute_name(key, store=True)]

    def update(self, *others: Any, **values: Any) -> None:
        for key, value in dict(*others, **values).items():
            self[key] = value

    def __ior__(self, other: Any) -> Attributes:  # type: ignore[override,misc]
        self.update(other)
        return self

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str, *default: Any) -> Any:
        if key not in self and default:
            return default[0]
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        key = next(reversed(self))
        return key, self.pop(key)

    def clear(self) -> None:
        for key in list(self):
            del self[key]


def guarded_vars(value: Any, /) -> Any:
    """vars and `x.__dict__`: public names and the script's own private ones."""
    if isinstance(value, ModuleType):
        return {name: getattr(value, name) for name in dir(value) if name[:1] != "_"}
    if isinstance(value, type):
        return _class_vars(value)
    real = getattr(value, "__dict__", None)
    if type(real) is not dict:
        raise TypeError("vars() argument must have __dict__ attribute")
    return Attributes(real)


def _class_vars(cls: type) -> MappingProxyType[str, Any]:
    if not is_script_class(cls):
        raise TypeError(f"vars() of the class {cls.__name__!r} is not available")
    return MappingProxyType(
        {
            names.shown(name): value
            for name, value in type.__dict__["__dict__"].__get__(cls).items()
            if (name[:1] != "_" or name.startswith(_PRIVATE) or name in names.SAFE_METHODS)
            # SAFETY: an enum's own descriptors read any attribute that their `name` says.
            and not isinstance(value, DynamicClassAttribute)
        }
    )


def matched(cls: Any) -> Any:
    """The class of a positional pattern, if the attributes that it names may be read."""
    named = getattr(cls, "__match_args__", ())
    if not isinstance(cls, type) or type(named) is not tuple:
        return cls
    # The instances of a class with another metaclass may be of any class: ABC.register.
    is_sure = type(cls) is type and not is_looked_at(cls)
    for name in named:
        attribute_name(name)
        if name in names.COMPUTED and not is_sure:
            raise AttributeError(f"the attribute {name!r} cannot stand in a pattern")
    return cls


def origin(alias: Any, /) -> Any:
    """typing.get_origin."""
    return shown_class(get_origin(alias))


def leave(code: Any = None, /) -> Never:
    """exit, quit and sys.exit."""
    raise SystemExit(code)


def getenv(name: str, default: Any = None) -> Any:
    """os.getenv: a sandbox's environment tells nothing."""
    return default


def attrgetter(name: Any, /, *others: Any) -> Callable[[Any], Any]:
    """operator.attrgetter."""
    paths = [_path(item) for item in (name, *others)]

    def get(value: Any, /) -> Any:
        found = tuple(_follow(value, path) for path in paths)
        return found if others else found[0]

    return get


def _path(name: Any) -> list[str]:
    if type(name) is not str:
        raise TypeError("attribute name must be a string")
    return name.split(".")


def _follow(value: Any, path: list[str]) -> Any:
    for name in path:
        value = load(value, name)
    return value


def methodcaller(name: Any, /, *args: Any, **values: Any) -> Callable[[Any], Any]:
    """operator.methodcaller."""
    attribute_name(name)
    return lambda value, /: load(value, name)(*args, **values)


BUILTINS: dict[str, Any] = {
    "getattr": guarded_getattr,
    "hasattr": guarded_hasattr,
    "setattr": guarded_setattr,
    "delattr": guarded_delattr,
    "dir": guarded_dir,
    "vars": guarded_vars,
    "type": TYPE,
    "exit": leave,
    "quit": leave,
    names.ATTRIBUTE: attribute,
    names.TYPE: shown_type,
    names.VARS: guarded_vars,
    names.MATCHED: matched,
    names.SET: object_setattr,
    names.SHOWN: names.shown,
}
"""The names that a script's builtins have from here."""
