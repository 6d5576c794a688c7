"""What a script may import: explicit names of the standard library, as fresh plain modules.

SAFETY: never `__all__`, no module as a value, no metaclass, no real stream, nothing that reaches
frames, code, loops or another module. A proxy's name begins with `sandbox.`, because IMPORT_FROM
falls back to sys.modules[f"{module.__name__}.{name}"].
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

_TABLE = """
json: JSONDecodeError JSONDecoder JSONEncoder dump dumps load loads
csv: DictReader DictWriter Error QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC Sniffer Dialect excel excel_tab reader unix_dialect writer
re: A ASCII DOTALL I IGNORECASE M MULTILINE Match NOFLAG Pattern RegexFlag S U UNICODE VERBOSE X compile error escape findall finditer fullmatch match search split sub subn
math: acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees dist e erf erfc exp exp2 expm1 fabs factorial floor fmod frexp fsum gamma gcd hypot inf isclose isfinite isinf isnan isqrt lcm ldexp lgamma log log10 log1p log2 modf nan nextafter perm pi pow prod radians remainder sin sinh sqrt sumprod tan tanh tau trunc ulp
cmath: acos acosh asin asinh atan atanh cos cosh e exp inf infj isclose isfinite isinf isnan log log10 nan nanj phase pi polar rect sin sinh sqrt tan tanh tau
statistics: NormalDist StatisticsError correlation covariance fmean geometric_mean harmonic_mean linear_regression mean median median_grouped median_high median_low mode multimode pstdev pvariance quantiles stdev variance
datetime: MAXYEAR MINYEAR UTC date datetime time timedelta timezone tzinfo
zoneinfo: ZoneInfo ZoneInfoNotFoundError available_timezones
collections: ChainMap Counter OrderedDict UserDict UserList UserString defaultdict deque namedtuple
collections.abc: AsyncGenerator AsyncIterable AsyncIterator Awaitable Callable Collection Container Coroutine Generator Hashable ItemsView Iterable Iterator KeysView Mapping MappingView MutableMapping MutableSequence MutableSet Reversible Sequence Set Sized ValuesView
itertools: accumulate batched chain combinations combinations_with_replacement compress count cycle dropwhile filterfalse groupby islice pairwise permutations product repeat starmap takewhile tee zip_longest
functools: cache cached_property cmp_to_key lru_cache partial partialmethod reduce total_ordering
operator: abs add and_ concat contains countOf delitem eq floordiv ge getitem gt iadd iand iconcat ifloordiv ilshift imatmul imod imul index indexOf inv invert ior ipow irshift is_ is_not isub itemgetter itruediv ixor le length_hint lshift lt matmul mod mul ne neg not_ or_ pos pow rshift setitem sub truediv truth xor
string: Template ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits octdigits printable punctuation whitespace
textwrap: TextWrapper dedent fill indent shorten wrap
difflib: Differ SequenceMatcher context_diff get_close_matches ndiff restore unified_diff
unicodedata: bidirectional category combining decimal decomposition digit east_asian_width is_normalized lookup mirrored name normalize numeric unidata_version
decimal: BasicContext Clamped Context Decimal DecimalException DefaultContext DivisionByZero ExtendedContext FloatOperation Inexact InvalidOperation MAX_EMAX MAX_PREC MIN_EMIN Overflow ROUND_05UP ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN ROUND_HALF_UP ROUND_UP Rounded Subnormal Underflow getcontext localcontext setcontext
fractions: Fraction
numbers: Complex Integral Number Rational Real
random: Random betavariate choice choices expovariate gammavariate gauss getrandbits getstate lognormvariate normalvariate paretovariate randbytes randint random randrange sample seed setstate shuffle triangular uniform vonmisesvariate weibullvariate
secrets: choice compare_digest randbelow randbits token_bytes token_hex token_urlsafe
uuid: NAMESPACE_DNS NAMESPACE_OID NAMESPACE_URL NAMESPACE_X500 UUID uuid3 uuid4 uuid5
hashlib: blake2b blake2s md5 pbkdf2_hmac sha1 sha224 sha256 sha384 sha3_224 sha3_256 sha3_384 sha3_512 sha512
hmac: HMAC compare_digest digest new
base64: a85decode a85encode b16decode b16encode b32decode b32encode b64decode b64encode b85decode b85encode decodebytes encodebytes standard_b64decode standard_b64encode urlsafe_b64decode urlsafe_b64encode
binascii: Error a2b_base64 a2b_hex b2a_base64 b2a_hex crc32 hexlify unhexlify
zlib: adler32 compress compressobj crc32 decompress decompressobj error
gzip: BadGzipFile compress decompress
io: BytesIO StringIO
struct: Struct calcsize error iter_unpack pack pack_into unpack unpack_from
array: array typecodes
heapq: heapify heappop heappush heappushpop heapreplace merge nlargest nsmallest
bisect: bisect bisect_left bisect_right insort insort_left insort_right
enum: Enum Flag IntEnum IntFlag StrEnum auto member nonmember property unique verify CONTINUOUS NAMED_FLAGS UNIQUE
dataclasses: FrozenInstanceError InitVar KW_ONLY MISSING asdict astuple field fields is_dataclass replace
typing: Annotated Any AnyStr AsyncIterable AsyncIterator Awaitable Callable ClassVar Collection Coroutine Counter DefaultDict Deque Dict Final FrozenSet Generator Generic Hashable Iterable Iterator List Literal LiteralString Mapping MutableMapping MutableSequence MutableSet NamedTuple Never NewType NoReturn NotRequired Optional OrderedDict ParamSpec Protocol Required Self Sequence Set Sized SupportsFloat SupportsIndex SupportsInt TYPE_CHECKING Text Tuple Type TypeAlias TypeGuard TypeVar TypedDict Union Unpack assert_never cast final get_args get_origin overload runtime_checkable
abc: ABC abstractmethod
copy: Error copy deepcopy
pprint: PrettyPrinter pformat pp pprint
time: gmtime localtime mktime monotonic monotonic_ns perf_counter perf_counter_ns process_time sleep strftime strptime struct_time time time_ns asctime ctime
calendar: Calendar TextCalendar day_abbr day_name isleap leapdays month month_abbr month_name monthcalendar monthrange timegm weekday
asyncio: ALL_COMPLETED FIRST_COMPLETED FIRST_EXCEPTION BoundedSemaphore CancelledError Condition Event InvalidStateError Lock PriorityQueue Queue QueueEmpty QueueFull Semaphore TaskGroup TimeoutError as_completed create_task gather run shield sleep timeout to_thread wait wait_for
concurrent.futures: ALL_COMPLETED FIRST_COMPLETED FIRST_EXCEPTION ThreadPoolExecutor TimeoutError as_completed wait
threading: Barrier BoundedSemaphore Condition Event Lock RLock Semaphore Thread Timer
queue: Empty Full LifoQueue PriorityQueue Queue SimpleQueue
contextlib: AsyncExitStack ContextDecorator ExitStack aclosing asynccontextmanager closing contextmanager nullcontext suppress
graphlib: CycleError TopologicalSorter
urllib.parse: parse_qs parse_qsl quote quote_plus unquote unquote_plus urldefrag urlencode urljoin urlparse urlsplit urlunparse urlunsplit
html: escape unescape
shlex: join quote split
colorsys: hls_to_rgb hsv_to_rgb rgb_to_hls rgb_to_hsv
fnmatch: filter fnmatch fnmatchcase translate
ipaddress: AddressValueError IPv4Address IPv4Interface IPv4Network IPv6Address IPv6Interface IPv6Network NetmaskValueError collapse_addresses ip_address ip_interface ip_network summarize_address_range
traceback: format_exc print_exc
warnings: warn
os.path: basename commonpath commonprefix dirname isabs join normpath split splitext sep
__future__: annotations
"""  # noqa: E501 - a table

_NAMES = {
    name: tuple(names.split())
    for name, _, names in (line.partition(":") for line in _TABLE.strip().splitlines())
}

_OWN = ("sys", "os")
"""Made of pieces, see `_sys` and `_os`."""

_GUARDED: dict[str, tuple[str, ...]] = {
    "functools": ("wraps", "update_wrapper"),
    "operator": ("attrgetter", "methodcaller"),
    "dataclasses": ("dataclass",),
}
"""Names that the guards stand in for."""

ALLOWED_MODULES: tuple[str, ...] = tuple(sorted({*_NAMES, *_OWN} - {"__future__"}))
"""Modules of the standard library that a script may import, besides `tools`."""

SUBSTITUTES = {
    "requests": "there is no network; call a tool instead",
    "urllib.request": "there is no network; call a tool instead",
    "http": "there is no network; call a tool instead",
    "http.client": "there is no network; call a tool instead",
    "httpx": "there is no network; call a tool instead",
    "aiohttp": "there is no network; call a tool instead",
    "socket": "there is no network; call a tool instead",
    "ssl": "there is no network; call a tool instead",
    "subprocess": "there are no other programs; do it in Python or call a tool",
    "multiprocessing": "use concurrent.futures.ThreadPoolExecutor",
    "pathlib": "use open() with a path, and os.path",
    "shutil": "use open() to read and write files under /workspace",
    "tempfile": "write to /tmp or /workspace with open()",
    "logging": "use print()",
    "pickle": "use json",
    "pandas": "use csv, statistics and plain lists and dicts",
    "numpy": "use statistics, math and plain lists",
    "inspect": "use describe functions of your own",
    "importlib": "import modules by name",
    "builtins": "the built-in functions are there without it",
    "ctypes": "only Python is available",
}
"""What a model reaches for, and what to use instead."""


def public_names(module: str) -> tuple[str, ...] | None:
    """The names of an allowed module; None when it is not allowed."""
    if module in _OWN:
        return tuple(name for name in vars(_make_own(module)) if not name.startswith("__"))
    names = _NAMES.get(module)
    return None if names is None else (*names, *_GUARDED.get(module, ()))


def is_package(module: str) -> bool:
    """Whether an allowed module lies below this name, as `urllib.parse` below `urllib`."""
    return any(name.startswith(f"{module}.") for name in ALLOWED_MODULES)


def make_module(name: str, guards: dict[str, Callable[..., Any]]) -> ModuleType:
    """A fresh proxy of an allowed module; overwriting its names hurts the script alone."""
    if name in _OWN:
        return _make_own(name)
    proxy = ModuleType(f"sandbox.{name}")
    real = importlib.import_module(name)
    proxy.__doc__ = (real.__doc__ or "").split("\n\n")[0] or None
    for item in _NAMES[name]:
        if hasattr(real, item):  # some are of a later Python
            setattr(proxy, item, getattr(real, item))
    for item in _GUARDED.get(name, ()):
        setattr(proxy, item, guards[item])
    return proxy


def make_package(name: str) -> ModuleType:
    """An empty proxy for a package of which only submodules are allowed."""
    return ModuleType(f"sandbox.{name}")


def _make_own(name: str) -> ModuleType:
    proxy = ModuleType(f"sandbox.{name}")
    if name == "os":
        proxy.__dict__.update(environ={}, sep="/", linesep="\n", getcwd=_workspace)
        proxy.__dict__["path"] = make_module("os.path", {})
        return proxy
    proxy.__dict__.update(
        exit=_exit,
        argv=["script.py"],
        maxsize=sys.maxsize,
        version=sys.version,
        version_info=tuple(sys.version_info),
        platform="linux",
        byteorder=sys.byteorder,
        getsizeof=sys.getsizeof,
        getrecursionlimit=sys.getrecursionlimit,
        stdout=_Writer(1),
        stderr=_Writer(2),
    )
    return proxy


def _workspace() -> str:
    return os.getcwd()


def _exit(code: object = None) -> None:
    raise SystemExit(code)


class _Writer:
    """A stream with two methods: nothing leads from it to the real one."""

    __slots__ = ("_number",)

    def __init__(self, number: int) -> None:
        self._number = number

    def write(self, text: str) -> int:
        """Write a text."""
        return (sys.stdout if self._number == 1 else sys.stderr).write(text)

    def flush(self) -> None:
        """Hand over what waits."""
        (sys.stdout if self._number == 1 else sys.stderr).flush()
