"""The modules that a script may import, and the names that each of them shows.

SAFETY: every name is written down here, never taken from `__all__` or dir(): both hold names that
lead out (enum.global_enum, typing.get_type_hints, string.Formatter, contextlib.chdir,
random.SystemRandom, hashlib.file_digest, ElementTree.parse), or that format, read or set what a
script names (UserString, enum.property). No module stands here as a value, no metaclass, no
stream, no event loop. Names that this Python does not have are left out.
"""

from __future__ import annotations

_TABLE = {
    "abc": "ABC abstractmethod",
    "array": "array typecodes",
    "ast": "literal_eval",
    "asyncio": """run gather sleep wait wait_for create_task as_completed shield Semaphore
        BoundedSemaphore Lock Event Condition Barrier Queue PriorityQueue LifoQueue TaskGroup
        timeout timeout_at to_thread iscoroutine iscoroutinefunction current_task Task Future
        FIRST_COMPLETED FIRST_EXCEPTION ALL_COMPLETED CancelledError TimeoutError
        InvalidStateError QueueEmpty QueueFull BrokenBarrierError""",
    "base64": """b64encode b64decode standard_b64encode standard_b64decode urlsafe_b64encode
        urlsafe_b64decode b32encode b32decode b32hexencode b32hexdecode b16encode b16decode
        a85encode a85decode b85encode b85decode encodebytes decodebytes""",
    "binascii": """hexlify unhexlify a2b_hex b2a_hex a2b_base64 b2a_base64 crc32 crc_hqx Error
        Incomplete""",
    "bisect": "bisect bisect_left bisect_right insort insort_left insort_right",
    "bz2": "compress decompress",
    "calendar": """Calendar TextCalendar HTMLCalendar monthrange monthcalendar isleap leapdays
        weekday weekheader month calendar setfirstweekday firstweekday timegm month_name
        month_abbr day_name day_abbr MONDAY TUESDAY WEDNESDAY THURSDAY FRIDAY SATURDAY SUNDAY
        IllegalMonthError IllegalWeekdayError""",
    "cmath": """acos acosh asin asinh atan atanh cos cosh e exp inf infj isclose isfinite isinf
        isnan log log10 nan nanj phase pi polar rect sin sinh sqrt tan tanh tau""",
    "collections": "ChainMap Counter OrderedDict UserDict UserList defaultdict deque",
    "collections.abc": """AsyncGenerator AsyncIterable AsyncIterator Awaitable Buffer ByteString
        Callable Collection Container Coroutine Generator Hashable ItemsView Iterable Iterator
        KeysView Mapping MappingView MutableMapping MutableSequence MutableSet Reversible Sequence
        Set Sized ValuesView""",
    "colorsys": "rgb_to_yiq yiq_to_rgb rgb_to_hls hls_to_rgb rgb_to_hsv hsv_to_rgb",
    "concurrent": "",
    "concurrent.futures": """ThreadPoolExecutor Executor Future as_completed wait ALL_COMPLETED
        FIRST_COMPLETED FIRST_EXCEPTION CancelledError TimeoutError InvalidStateError
        BrokenExecutor""",
    "configparser": """ConfigParser RawConfigParser BasicInterpolation ExtendedInterpolation Error
        NoSectionError NoOptionError DuplicateSectionError DuplicateOptionError ParsingError
        MissingSectionHeaderError InterpolationError DEFAULTSECT""",
    "contextlib": """contextmanager asynccontextmanager closing aclosing nullcontext suppress
        redirect_stdout redirect_stderr ExitStack AsyncExitStack ContextDecorator
        AsyncContextDecorator AbstractContextManager AbstractAsyncContextManager""",
    "contextvars": "ContextVar Token",
    "copy": "Error",
    "csv": """reader writer DictReader DictWriter Dialect excel excel_tab unix_dialect Sniffer
        register_dialect unregister_dialect get_dialect list_dialects field_size_limit Error
        QUOTE_ALL QUOTE_MINIMAL QUOTE_NONE QUOTE_NONNUMERIC QUOTE_STRINGS QUOTE_NOTNULL""",
    "dataclasses": "field is_dataclass Field InitVar KW_ONLY MISSING FrozenInstanceError",
    "datetime": "date datetime time timedelta timezone tzinfo UTC MINYEAR MAXYEAR",
    "decimal": """Decimal Context getcontext setcontext localcontext BasicContext ExtendedContext
        DefaultContext ROUND_CEILING ROUND_DOWN ROUND_FLOOR ROUND_HALF_DOWN ROUND_HALF_EVEN
        ROUND_HALF_UP ROUND_UP ROUND_05UP DecimalException Clamped InvalidOperation DivisionByZero
        Inexact Rounded Subnormal Overflow Underflow FloatOperation ConversionSyntax
        DivisionImpossible DivisionUndefined InvalidContext MAX_PREC MAX_EMAX MIN_EMIN
        MIN_ETINY""",
    "difflib": """SequenceMatcher Differ HtmlDiff ndiff restore unified_diff context_diff
        diff_bytes get_close_matches IS_LINE_JUNK IS_CHARACTER_JUNK""",
    "enum": """Enum IntEnum StrEnum Flag IntFlag auto unique verify member nonmember
        CONTINUOUS NAMED_FLAGS UNIQUE STRICT CONFORM EJECT KEEP FlagBoundary EnumCheck""",
    "errno": "ENOENT EACCES EEXIST EISDIR ENOTDIR ENOSPC EPERM EAGAIN EINVAL errorcode",
    "fnmatch": "fnmatch fnmatchcase filter translate",
    "fractions": "Fraction",
    "functools": """reduce partial partialmethod lru_cache cache cmp_to_key
        total_ordering WRAPPER_ASSIGNMENTS WRAPPER_UPDATES""",
    "glob": "glob iglob escape has_magic",
    "graphlib": "TopologicalSorter CycleError",
    "gzip": "compress decompress BadGzipFile",
    "hashlib": """md5 sha1 sha224 sha256 sha384 sha512 blake2b blake2s sha3_224 sha3_256 sha3_384
        sha3_512 shake_128 shake_256 new pbkdf2_hmac scrypt algorithms_available
        algorithms_guaranteed""",
    "heapq": "heappush heappop heapify heapreplace heappushpop nlargest nsmallest merge",
    "hmac": "new digest compare_digest HMAC",
    "html": "escape unescape",
    "html.entities": "html5 name2codepoint codepoint2name entitydefs",
    "html.parser": "HTMLParser",
    "io": "StringIO BytesIO",
    "ipaddress": """ip_address ip_network ip_interface IPv4Address IPv4Network IPv4Interface
        IPv6Address IPv6Network IPv6Interface summarize_address_range collapse_addresses
        AddressValueError NetmaskValueError""",
    "itertools": """accumulate batched chain combinations combinations_with_replacement compress
        count cycle dropwhile filterfalse groupby islice pairwise permutations product repeat
        starmap takewhile tee zip_longest""",
    "json": "dumps loads dump load JSONDecodeError JSONEncoder JSONDecoder",
    "keyword": "iskeyword issoftkeyword kwlist softkwlist",
    "logging": """getLogger basicConfig debug info warning warn error exception critical log disable
        addLevelName getLevelName shutdown Logger LoggerAdapter Handler StreamHandler FileHandler
        NullHandler Formatter BufferingFormatter Filter Filterer LogRecord makeLogRecord
        captureWarnings lastResort raiseExceptions root NOTSET DEBUG INFO WARNING WARN ERROR
        CRITICAL FATAL BASIC_FORMAT""",
    "lzma": "compress decompress LZMAError",
    "math": """acos acosh asin asinh atan atan2 atanh cbrt ceil comb copysign cos cosh degrees
        dist e erf erfc exp exp2 expm1 fabs factorial floor fma fmod frexp fsum gamma gcd hypot
        inf isclose isfinite isinf isnan isqrt lcm ldexp lgamma log log10 log1p log2 modf nan
        nextafter perm pi pow prod radians remainder sin sinh sqrt sumprod tan tanh tau trunc
        ulp""",
    "numbers": "Number Complex Real Rational Integral",
    "operator": """abs add and_ call concat contains countOf delitem eq floordiv ge getitem gt
        iadd iand iconcat ifloordiv ilshift imatmul imod imul index indexOf inv invert ior ipow
        irshift is_ is_not isub itemgetter itruediv ixor le length_hint lshift lt matmul mod mul
        ne neg not_ or_ pos pow rshift setitem sub truediv truth xor""",
    "os": """sep linesep extsep pathsep curdir pardir devnull name fspath fsencode fsdecode PathLike
        listdir scandir walk mkdir makedirs remove unlink rmdir removedirs rename replace stat lstat
        access getcwd cpu_count urandom F_OK R_OK W_OK X_OK error stat_result DirEntry""",
    "os.path": """abspath basename commonpath commonprefix dirname exists expanduser extsep getatime
        getctime getmtime getsize isabs isdir isfile islink join lexists normcase normpath realpath
        relpath samefile sep split splitdrive splitext""",
    "pathlib": "Path PosixPath PurePath PurePosixPath PureWindowsPath",
    "platform": "python_version python_implementation system machine",
    "pprint": "pprint pformat pp isreadable isrecursive saferepr PrettyPrinter",
    "queue": "Queue LifoQueue PriorityQueue SimpleQueue Empty Full",
    "random": """Random seed random uniform randint randrange choice choices sample shuffle
        triangular betavariate binomialvariate expovariate gammavariate gauss lognormvariate
        normalvariate vonmisesvariate paretovariate weibullvariate getrandbits randbytes getstate
        setstate""",
    "re": """compile search match fullmatch split findall finditer sub subn escape purge error
        Pattern Match RegexFlag A ASCII DEBUG I IGNORECASE L LOCALE M MULTILINE NOFLAG S DOTALL T
        TEMPLATE U UNICODE X VERBOSE PatternError""",
    "secrets": "token_hex token_bytes token_urlsafe randbelow randbits choice compare_digest",
    "shlex": "split join quote",
    "shutil": """copy copy2 copyfile copyfileobj copytree move disk_usage get_terminal_size
        ignore_patterns Error SameFileError""",
    "sqlite3": """Connection Cursor Row Binary Date Time Timestamp Error Warning DatabaseError
        DataError IntegrityError InterfaceError InternalError NotSupportedError OperationalError
        ProgrammingError PARSE_DECLTYPES PARSE_COLNAMES connect complete_statement
        register_adapter register_converter sqlite_version sqlite_version_info""",
    "statistics": """mean fmean geometric_mean harmonic_mean median median_low median_high
        median_grouped mode multimode quantiles pstdev pvariance stdev variance covariance
        correlation linear_regression kde NormalDist StatisticsError""",
    "string": """Template ascii_letters ascii_lowercase ascii_uppercase capwords digits hexdigits
        octdigits printable punctuation whitespace""",
    "struct": "pack unpack pack_into unpack_from iter_unpack calcsize Struct error",
    "sys": "version version_info maxsize maxunicode byteorder float_info int_info hash_info "
    "platform implementation getsizeof getrecursionlimit setrecursionlimit intern",
    "tempfile": """NamedTemporaryFile TemporaryFile SpooledTemporaryFile TemporaryDirectory
        gettempdir mkdtemp""",
    "textwrap": "wrap fill shorten dedent indent TextWrapper",
    "time": """time time_ns sleep perf_counter perf_counter_ns monotonic monotonic_ns process_time
        process_time_ns thread_time strftime strptime gmtime localtime mktime ctime asctime
        struct_time timezone altzone daylight tzname""",
    "timeit": "default_timer",
    "tomllib": "load loads TOMLDecodeError",
    "traceback": "format_exc print_exc format_exception format_exception_only print_exception",
    "types": "SimpleNamespace MappingProxyType NoneType EllipsisType NotImplementedType",
    "typing": """Any AnyStr Annotated Awaitable BinaryIO Callable ClassVar Collection Concatenate
        Container Coroutine Counter DefaultDict Deque Dict Final FrozenSet Generator Generic
        Hashable IO ItemsView Iterable Iterator KeysView List Literal LiteralString Mapping Match
        MutableMapping MutableSequence MutableSet NamedTuple Never NewType NoReturn NotRequired
        Optional OrderedDict ParamSpec ParamSpecArgs ParamSpecKwargs Pattern Protocol ReadOnly
        Required Reversible Self Sequence Set Sized SupportsAbs SupportsBytes SupportsComplex
        SupportsFloat SupportsIndex SupportsInt SupportsRound Text TextIO Tuple TypeAlias TypeGuard
        TypeIs TypeVar TypeVarTuple TypedDict Union Unpack ValuesView AsyncGenerator AsyncIterable
        AsyncIterator ChainMap AbstractSet assert_never assert_type cast final get_args is_typeddict
        overload override reveal_type runtime_checkable TYPE_CHECKING""",
    "unicodedata": """bidirectional category combining decimal decomposition digit
        east_asian_width is_normalized lookup mirrored name normalize numeric unidata_version""",
    "urllib": "",
    "urllib.parse": """urlparse urlunparse urlsplit urlunsplit urljoin urldefrag urlencode quote
        quote_plus quote_from_bytes unquote unquote_plus unquote_to_bytes parse_qs parse_qsl
        ParseResult SplitResult DefragResult""",
    "uuid": "UUID uuid3 uuid4 uuid5 NAMESPACE_DNS NAMESPACE_URL NAMESPACE_OID NAMESPACE_X500 "
    "SafeUUID",
    "warnings": """warn simplefilter filterwarnings resetwarnings catch_warnings formatwarning
        WarningMessage""",
    "xml": "",
    "xml.etree": "",
    "xml.etree.ElementTree": """tostring tostringlist Element ElementTree
        SubElement Comment ProcessingInstruction PI QName iselement indent dump
        register_namespace ParseError""",
    "zlib": """compress decompress compressobj decompressobj adler32 crc32 error MAX_WBITS
        DEFLATED Z_BEST_SPEED Z_BEST_COMPRESSION Z_DEFAULT_COMPRESSION""",
    "zoneinfo": "ZoneInfo ZoneInfoNotFoundError InvalidTZPathWarning available_timezones",
    "__future__": """annotations division generators generator_stop print_function
        absolute_import unicode_literals with_statement nested_scopes""",
}

GUARDED = {
    "collections": ("namedtuple",),
    "copy": ("copy", "deepcopy", "replace"),
    "dataclasses": ("dataclass", "fields", "asdict", "astuple", "replace"),
    "functools": ("cached_property", "wraps", "update_wrapper"),
    "gzip": ("open",),
    "shutil": ("rmtree",),
    "xml.etree.ElementTree": ("fromstring", "fromstringlist", "XML", "parse"),
    "operator": ("attrgetter", "methodcaller"),
    "os": ("environ", "getenv"),
    "sys": ("argv", "exit", "stdout", "stderr"),
    "typing": ("Type", "get_origin"),
}
"""Names that are made by guards.py, not taken from the library."""

NAMES: dict[str, tuple[str, ...]] = {
    module: tuple(sorted({*names.split(), *GUARDED.get(module, ())}))
    for module, names in _TABLE.items()
}
"""Module to every name that it shows, submodules apart."""

ALLOWED_MODULES: tuple[str, ...] = tuple(
    sorted(module for module, names in NAMES.items() if names and module != "__future__")
)

TOOLS = "tools"
"""The package of stubs: always importable, public names only."""


def submodules(module: str) -> tuple[str, ...]:
    """The allowed modules directly inside `module`, by their last names."""
    start = module + "."
    return tuple(name[len(start) :] for name in NAMES if name.startswith(start))


def exposed(module: str) -> frozenset[str]:
    """Every name that `module` shows."""
    return frozenset(NAMES[module]) | frozenset(submodules(module))


def is_tools(module: str) -> bool:
    """Is it the stubs' package or inside it?"""
    return module == TOOLS or module.startswith(TOOLS + ".")
