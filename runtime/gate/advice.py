"""What to write instead: one line for each reflex that the gate has to refuse."""

from __future__ import annotations

_NETWORK = "there is no network here; call a tool from `tools`"
_DATA = "not installed; use lists, dicts, statistics and collections"
_PROCESS = "a script cannot start processes; call a tool from `tools`"
_FILES = "use open() on a path under /workspace, /tmp or /data"
_INSIDE = "scripts cannot look into the interpreter; write the step out as plain code"
_THREADS = "use asyncio.gather"

MODULES = {
    "requests": _NETWORK,
    "httpx": _NETWORK,
    "aiohttp": _NETWORK,
    "urllib3": _NETWORK,
    "urllib.request": _NETWORK,
    "http": _NETWORK,
    "socket": _NETWORK,
    "ssl": _NETWORK,
    "smtplib": _NETWORK,
    "ftplib": _NETWORK,
    "boto3": _NETWORK,
    "bs4": "not installed; use html and re on the text that a tool returned",
    "pandas": _DATA,
    "numpy": _DATA,
    "polars": _DATA,
    "scipy": _DATA,
    "sklearn": _DATA,
    "matplotlib": "there is nothing to draw on; print a table",
    "seaborn": "there is nothing to draw on; print a table",
    "yaml": "not installed; use json",
    "pydantic": "not installed; use dataclasses",
    "tabulate": "not installed; use f-strings with widths, as in f'{name:<20}'",
    "dateutil": "not installed; use datetime.fromisoformat or strptime",
    "pytz": "not installed; use zoneinfo",
    "os": _FILES,
    "shutil": _FILES,
    "pathlib": _FILES,
    "glob": _FILES,
    "tempfile": _FILES,
    "sqlite3": "use lists, dicts and collections",
    "zipfile": "use gzip or zlib",
    "pickle": "use json",
    "subprocess": _PROCESS,
    "multiprocessing": _PROCESS,
    "threading": _THREADS,
    "concurrent": _THREADS,
    "inspect": _INSIDE,
    "importlib": _INSIDE,
    "builtins": _INSIDE,
    "ctypes": _INSIDE,
    "gc": _INSIDE,
    "ast": _INSIDE,
    "argparse": "a script has no command line; write the values into it",
    "dotenv": "there are no secrets here; the tools hold their own",
    "logging": "use print",
    "warnings": "use print",
    "timeit": "use time.perf_counter",
    "doctest": "use assert",
    "unittest": "use assert",
    "pytest": "use assert",
}

NAMES = {
    "input": "nobody is there to answer; call a tool, or write the value into the script",
    "eval": "use json.loads, int or float",
    "exec": "write the code out",
    "compile": "write the code out",
    "globals": "keep the values in a dict of your own",
    "locals": "keep the values in a dict of your own",
    "breakpoint": "print what you want to see",
    "help": "print the docstring: print(tool.__doc__)",
    "__import__": "use an import statement",
    "__file__": "a script has no file here",
    "__builtins__": "call the builtin by its name",
    "__loader__": _INSIDE,
    "__spec__": _INSIDE,
}

ATTRIBUTES = {
    "__subclasses__": "name the classes in a list",
    "__globals__": "keep the values in a dict of your own",
    "__mro__": "use isinstance or issubclass",
    "__bases__": "use isinstance or issubclass",
    "__base__": "use isinstance or issubclass",
    "mro": "use isinstance or issubclass",
    "__traceback__": "use traceback.format_exc()",
    "tb_next": "use traceback.format_exc()",
    "__annotations__": "list the names yourself, or use dataclasses.fields",
    "__dataclass_fields__": "use dataclasses.fields",
    "__setattr__": "use setattr, or assign the attribute",
    "__delattr__": "use delattr, or `del`",
    "__getattribute__": "define __getattr__ or a property",
    "__reduce__": "define __copy__ or __deepcopy__",
    "__del__": "use a with statement",
    "__class__": "call the class you want",
    "__dict__": "assign the attributes one by one, or use setattr",
}
