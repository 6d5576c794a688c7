"""Which names a script may use: one table for the static check and for every guard at run time.

Our own names begin with PREFIX, which no script may write. A private attribute (`x._data`) is
compiled to one with PREFIX before it, so that a script's own classes work and nobody else's private
attributes can be reached.
"""

from __future__ import annotations

PREFIX = "_lb_"

PUBLIC_PRIVATE = frozenset(
    {
        "_asdict", "_replace", "_fields", "_make", "_field_defaults", "_missing_",
        "_generate_next_value_", "_ignore_", "_order_", "_value_", "_name_",
    }
)  # fmt: skip
"""Names with an underscore that the standard library documents for use."""

READABLE_DUNDERS = frozenset(
    {
        "__name__", "__qualname__", "__doc__", "__members__", "__cause__", "__context__",
        "__annotations__", "__version__", "__author__", "__all__", "__notes__",
    }
)  # fmt: skip

DEFINABLE_DUNDERS = frozenset(
    {
        "__init__", "__new__", "__post_init__", "__init_subclass__", "__set_name__",
        "__repr__", "__str__", "__bytes__", "__format__", "__hash__", "__bool__",
        "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__",
        "__len__", "__length_hint__", "__getitem__", "__setitem__", "__delitem__", "__missing__",
        "__iter__", "__next__", "__reversed__", "__contains__", "__call__", "__getattr__",
        "__enter__", "__exit__", "__aenter__", "__aexit__", "__await__", "__aiter__", "__anext__",
        "__get__", "__set__", "__delete__", "__class_getitem__", "__dir__", "__copy__",
        "__deepcopy__", "__index__", "__int__", "__float__", "__complex__", "__round__",
        "__trunc__", "__floor__", "__ceil__", "__neg__", "__pos__", "__abs__", "__invert__",
        *(
            f"__{kind}{name}__"
            for name in (
                "add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul",
                "lshift", "rshift", "and", "or", "xor",
            )
            for kind in ("", "r", "i")
        ),
    }
)  # fmt: skip
"""Methods of the language's protocols that reach nothing but the object itself."""

CLASS_DUNDERS = frozenset({"__slots__", "__match_args__", "__doc__", "__hash__"})
"""May be assigned in a class body."""

MODULE_DUNDERS = frozenset({"__all__", "__version__", "__author__"})
"""May be assigned by a script."""

INSPECTING = frozenset(
    {
        "ag_await", "ag_code", "ag_frame", "cr_await", "cr_code", "cr_frame", "cr_origin",
        "gi_code", "gi_frame", "gi_yieldfrom", "f_back", "f_builtins", "f_code", "f_globals",
        "f_locals", "f_trace", "co_code", "co_consts", "tb_frame", "tb_next", "func_code",
        "func_globals", "im_class", "im_func", "im_self", "mro", "get_stack", "get_coro",
        "print_stack", "get_loop", "subprocess_exec", "subprocess_shell",
    }
)  # fmt: skip
"""Attributes that lead to frames, code or loops. Source: RestrictedPython, and its advisories."""


def is_dunder(name: str) -> bool:
    """`__like_this__`."""
    return len(name) > 4 and name.startswith("__") and name.endswith("__")


def refused_name(name: str) -> str | None:
    """Why a script may not bind or read a plain name; None when it may."""
    if name.startswith(PREFIX):
        return f"names that begin with {PREFIX} are taken"
    return None


def refused_attribute(name: str, *, defining: bool = False) -> str | None:
    """Why an attribute may not be read or set; None when it may (perhaps under another name)."""
    if name.startswith(PREFIX):
        return f"names that begin with {PREFIX} are taken"
    if name in INSPECTING:
        return f"the attribute {name} is not available"
    if is_dunder(name):
        allowed = name in READABLE_DUNDERS or name in DEFINABLE_DUNDERS
        if not allowed and not (defining and name in CLASS_DUNDERS):
            return f"the attribute {name} is not available"
    return None


def compiled_attribute(name: str, class_name: str | None = None) -> str:
    """The name under which an attribute is compiled: private ones get the prefix."""
    if not name.startswith("_") or is_dunder(name) or name in PUBLIC_PRIVATE or name == "_":
        return name
    if name.startswith("__") and class_name is not None:
        return f"{PREFIX}{class_name.lstrip('_')}_{name}"
    return f"{PREFIX}{name}"
