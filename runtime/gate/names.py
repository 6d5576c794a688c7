"""Which names a script may write, and what private names are compiled to.

One table serves every check: the transformer's, the getattr guard's, the format guard's, the
class patterns', the dataclass fields'.

Private attributes need no guard: `x._data` is compiled to `x._lb__data`, in class bodies too. A
script's own classes work as ever, and nothing of the library carries such a name. Names of
variables, parameters and keywords stay as they are.

SAFETY: the guards live in the builtins under `_lb_` names that no script can write. Class-private
mangling joins names with `__`, so that no guard's name holds two underscores in a row.
"""

from __future__ import annotations

# ruff: noqa: SIM905 - a table of words reads best as text
import re

PREFIX = "_lb_"
"""Of the guards' names, and of a script's private attributes."""

SHOW = PREFIX + "show"
ATTRIBUTE = PREFIX + "attribute"
TYPE = PREFIX + "type"
VARS = PREFIX + "vars"
MATCHED = PREFIX + "matched"
SET = PREFIX + "set"
SHOWN = PREFIX + "shown"
CAPTURED = PREFIX + "case"
"""Prefix of the temporaries that hold the classes of a match statement."""

_PRIVATE = PREFIX + "_"
_SHOWN = re.compile(rf"\b{PREFIX}(?=_)")

SAFE_METHODS = frozenset(
    f"__{name}__"
    for name in (
        "init new post_init call repr str bytes format hash bool len length_hint contains iter "
        "next reversed getitem setitem delitem missing getattr dir get set delete set_name "
        "init_subclass class_getitem enter exit await aiter anext aenter aexit "
        "lt le eq ne gt ge "
        "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and or xor "
        "radd rsub rmul rmatmul rtruediv rfloordiv rmod rdivmod rpow rlshift rrshift rand ror rxor "
        "iadd isub imul imatmul itruediv ifloordiv imod ipow ilshift irshift iand ior ixor "
        "neg pos abs invert complex int float index round trunc floor ceil fspath copy deepcopy"
    ).split()
)
"""Special methods that a class may define, alias and call."""

READABLE = SAFE_METHODS | frozenset(
    f"__{name}__"
    for name in (
        "name qualname doc module members cause context suppress_context notes match_args version"
    ).split()
)
WRITABLE = frozenset(
    f"__{name}__" for name in "name qualname doc cause context suppress_context".split()
)
CLASS_NAMES = SAFE_METHODS | {"__slots__", "__match_args__", "__doc__"}
"""Dunder names that a class body may bind."""

MODULE_LOADS = frozenset({"__name__", "__doc__", "__debug__", "__class__"})
MODULE_STORES = frozenset({"__all__", "__version__", "__author__", "__doc__"})

KEPT = frozenset(
    "_asdict _replace _fields _make _field_defaults _missing_ _generate_next_value_ _ignore_ "
    "_order_ _value_ _name_ _init _qsize _put _get".split()
)
"""Underscore names that are public: of named tuples, enums and queues."""

INSPECTION = frozenset(
    "tb_frame tb_next f_back f_builtins f_code f_generator f_globals f_locals f_trace co_code "
    "co_consts gi_frame gi_code gi_yieldfrom cr_await cr_frame cr_code cr_origin ag_await ag_frame "
    "ag_code mro get_stack get_coro print_stack get_loop subprocess_exec subprocess_shell "
    "enable_load_extension load_extension setconfig".split()
)
"""Attributes that lead from a value into the interpreter, or load machine code into it."""

COMPUTED = frozenset(
    "format format_map vformat get_field get_value obj raw detach parser __init__ "
    "__getattr__".split()
)
"""Attributes whose loads go through the run-time guard."""


def is_dunder(name: str) -> bool:
    """Is it `__x__`: a name that belongs to the language?"""
    return len(name) > 4 and name.startswith("__") and name.endswith("__")


def is_private(name: str) -> bool:
    """Is it an attribute name that is compiled to a script-private one?"""
    return name.startswith("_") and not is_dunder(name) and name not in KEPT


def is_reserved(name: str) -> bool:
    """Is it a name that no script may bind, load or spell?"""
    return name.startswith(PREFIX)


def mangled(name: str, class_name: str) -> str:
    """The name as Python compiles it inside `class class_name`."""
    owner = class_name.lstrip("_")
    if not owner or not name.startswith("__") or name.endswith("__"):
        return name
    return f"_{owner}{name}"


def private(name: str) -> str:
    """The script-private attribute for `_x`; one that is already so stays."""
    return name if name.startswith(_PRIVATE) else PREFIX + name


def plain(compiled: str) -> str:
    """The name that the script wrote for a script-private one."""
    return compiled.removeprefix(PREFIX)


def shown(text: str) -> str:
    """The text with script-private names as the script wrote them."""
    return _SHOWN.sub("", text) if PREFIX in text else text


def attribute_problem(name: str, *, store: bool = False) -> str:
    """Why this attribute may not be read (or written), or an empty string."""
    if is_dunder(name):
        allowed = WRITABLE if store else READABLE
        return "" if name in allowed else "it leads into the interpreter"
    if name in INSPECTION:
        return "it leads into the interpreter"
    if is_reserved(name):
        return f"names that begin with {PREFIX} are reserved"
    return ""
