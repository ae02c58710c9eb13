"""A pickle machine that runs no code: it builds containers, tensors and classes that were allowed, nothing else.

It reads protocols 0 to 5. What a stream may name is listed in `_allowed`; a user adds classes and functions
with ``torch.serialization.add_safe_globals``. Every length is checked against the bytes that are there, so that a
small stream cannot ask for much memory; whatever is wrong with it raises UnpicklingError.
"""

import struct
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict, defaultdict
from functools import lru_cache
from pickle import UnpicklingError

import lamina
from lamina import _C
from lamina import storage as _storage

# Modules whose functions are refused even where a user allowed them.
_BLOCKED = frozenset(("sys", "os", "posix", "nt"))
_MAX_KEY = 10_000  # elements inside of a key, which is hashed each time


# ---- what a stream may name -----------------------------------------------------------------------


def _encode(text, encoding="latin1"):
    """Bytes, as protocol 2 spells them."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1", "utf-8", "utf8", "ascii"):
        raise UnpicklingError(f"_codecs.encode with encoding {encoding!r} is not allowed")
    return text.encode(encoding)


def _bytearray(*args):
    if args and not isinstance(args[0], (bytes, bytearray, str)):
        raise UnpicklingError("bytearray of anything but bytes and text is not allowed")
    return bytearray(*args)


def _set(*args):
    if args and not isinstance(args[0], (list, tuple, set, frozenset)):
        raise UnpicklingError("set of anything but lists is not allowed")
    for key in args[0] if args else ():
        _check_key(key)
    return set(*args)


def _mapping(cls):
    def make(*args):
        if args and not isinstance(args[0], (list, tuple, dict)):
            raise UnpicklingError(f"{cls.__name__} of {type(args[0]).__name__} is not allowed")
        if args and not isinstance(args[0], dict):
            for pair in args[0]:
                _check_key(pair[0] if isinstance(pair, (list, tuple)) and pair else pair)
        return cls(*args)

    return make


_FACTORIES = {"dict": dict, "list": list, "int": int, "float": float, "str": str, "tuple": tuple}


def _defaultdict(*args):
    factory = args[0] if args else None
    allowed = (None, dict, list, int, float, str, tuple, set, bool, OrderedDict, Counter)
    if not any(factory is f for f in allowed):
        raise UnpicklingError("a defaultdict's factory must be a builtin type")
    return defaultdict(factory, *args[1:])


_CALLED_AS = {
    OrderedDict: _mapping(OrderedDict),
    Counter: _mapping(Counter),
    defaultdict: _defaultdict,
    set: _set,
    bytearray: _bytearray,
}

_TENSOR_TYPES = (
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor",
    "HalfTensor", "IntTensor", "LongTensor", "ShortTensor",
)  # fmt: skip
_REBUILD = (
    "_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_parameter",
    "_rebuild_parameter_with_state", "_rebuild_meta_tensor_no_storage",
    "_rebuild_device_tensor_from_cpu_tensor", "_rebuild_device_tensor_from_numpy",
    "_rebuild_sparse_tensor", "_rebuild_qtensor", "_rebuild_nested_tensor",
    "_rebuild_wrapper_subclass",
)  # fmt: skip


@lru_cache(maxsize=1)
def _allowed():
    """Objects by the full name that files of PyTorch give them."""
    from lamina import _tensor, _utils

    table = {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "collections.defaultdict": defaultdict,
        "_codecs.encode": _encode,
        "builtins.bytearray": bytearray,
        "builtins.complex": complex,
        "builtins.set": set,
        "torch.Size": lamina.Size,
        "torch.Tensor": lamina.Tensor,
        "torch.device": lamina.device,
        "torch.storage.UntypedStorage": _C.UntypedStorage,
        "torch.UntypedStorage": _C.UntypedStorage,
        "torch.storage.TypedStorage": _storage.TypedStorage,
        "torch.storage._load_from_bytes": _storage._load_from_bytes,
        "torch._tensor._rebuild_from_type_v2": _rebuild_from_type_v2,
    }
    for name, factory in _FACTORIES.items():
        table["builtins." + name] = factory
    from lamina import serialization

    table["torch.serialization._get_layout"] = serialization._get_layout
    for name in _REBUILD:
        if hasattr(_utils, name):
            table["torch._utils." + name] = getattr(_utils, name)
    table["torch._tensor._from_bytes"] = _tensor._from_bytes
    for name in _storage._NAMES:
        for module in ("torch", "torch.cuda"):
            table[f"{module}.{name}"] = getattr(_storage, name)
    for name in _TENSOR_TYPES:
        if hasattr(lamina, name):
            for module in ("torch", "torch.cuda"):
                table[f"{module}.{name}"] = getattr(lamina, name)
    for name, value in vars(_C).items():
        if isinstance(value, _C.dtype):
            table["torch." + name] = value
    try:
        from lamina.nn.parameter import Buffer, Parameter

        table["torch.nn.parameter.Parameter"] = Parameter
        table["torch.nn.parameter.Buffer"] = Buffer
    except ImportError:
        pass
    return table


def _rebuild_from_type_v2(func, new_type, args, state):
    """A tensor of a class with attributes; both the function and the class must be allowed."""
    from lamina import _tensor

    safe = {id(_allowed()["torch._utils." + n]) for n in _REBUILD if _has(n)}
    safe.add(id(_tensor._from_bytes))
    if id(func) not in safe and not _is_user_global(func):
        raise UnpicklingError("_rebuild_from_type_v2 calls a function that is not allowed")
    if not isinstance(new_type, type) or not issubclass(new_type, lamina.Tensor):
        raise UnpicklingError("_rebuild_from_type_v2 makes something that is no tensor")
    return _tensor._rebuild_from_type_v2(func, new_type, args, state)


def _has(name):
    return "torch._utils." + name in _allowed()


# ---- what the user allowed ------------------------------------------------------------------------

_user: list = []  # objects, or pairs of an object and a full name


def _add_safe_globals(safe_globals):
    for item in safe_globals:
        if item not in _user:
            _user.append(item)


def _get_safe_globals():
    return list(_user)


def _clear_safe_globals():
    _user.clear()


def _remove_safe_globals(globals_to_remove):
    for item in globals_to_remove:
        if item in _user:
            _user.remove(item)


class _safe_globals:
    """Allow classes and functions for the time of a context."""

    def __init__(self, safe_globals):
        self.safe_globals = safe_globals

    def __enter__(self):
        self._before = list(_user)
        _add_safe_globals(self.safe_globals)

    def __exit__(self, *exc):
        _user[:] = self._before


def _user_allowed():
    table = {}
    for item in _user:
        if isinstance(item, tuple):
            if len(item) != 2:
                raise ValueError(
                    f"Expected tuple of length 2 (global, str of callable full path); got {item}"
                )
            obj, name = item
            if not isinstance(name, str):
                raise TypeError(
                    f"Expected 2nd item in tuple to be str of callable full path; got {name!r}"
                )
            table[name] = obj
            continue
        module, name = item.__module__, item.__qualname__
        table[f"{module}.{name}"] = item
        if module == "lamina" or module.startswith("lamina."):
            table[f"torch{module[6:]}.{name}"] = item
    return table


def _is_user_global(obj):
    return any(obj is (item[0] if isinstance(item, tuple) else item) for item in _user)


def _check_key(key, limit=_MAX_KEY):
    """A tuple of tuples of tuples is small in memory, but not for who computes its hash."""
    if not isinstance(key, (tuple, frozenset)):
        return
    waiting, seen = [key], 0
    while waiting:
        part = waiting.pop()
        seen += len(part)
        if seen > limit:
            raise UnpicklingError("a key with too many parts")
        waiting.extend(p for p in part if isinstance(p, (tuple, frozenset)))


class _Mark:
    """What MARK leaves on the stack."""


_MARK = _Mark()


class Unpickler:
    """Reads one object from `file` (an object with read and readline, or bytes).

    `persistent_load` is called for persistent ids. After `load` the file stands behind the pickle,
    if it can be sought; `position` says where it ended.
    """

    def __init__(self, file, *, encoding="bytes"):
        self.encoding = encoding
        if isinstance(file, (bytes, bytearray, memoryview)):
            self.data, self.start, self.file = memoryview(file), 0, None
        else:
            self.file = file
            self.start = file.tell() if hasattr(file, "tell") else 0
            self.data = memoryview(file.read())
        self.position = 0

    def persistent_load(self, pid):
        raise UnpicklingError("unsupported persistent id encountered")

    def load(self):
        """The object. Raises UnpicklingError for anything that is not plain data."""
        try:
            result = self._run()
        except (UnpicklingError, EOFError, NotImplementedError, KeyboardInterrupt):
            raise
        except _Passed as error:
            raise error.args[0] from None
        except RecursionError:
            raise UnpicklingError("the pickle is nested too deeply") from None
        except MemoryError:
            raise UnpicklingError("the pickle asks for more memory than there is") from None
        except Exception as error:
            raise UnpicklingError(f"broken pickle: {type(error).__name__}: {error}") from error
        if self.file is not None and hasattr(self.file, "seek"):
            self.file.seek(self.start + self.position)
        return result

    # ---- reading ----

    def _take(self, n):
        end = self.position + n
        if n < 0 or end > len(self.data):
            raise EOFError("Ran out of input")
        part = self.data[self.position : end]
        self.position = end
        return part

    def _line(self):
        data = self.data
        at = self.position
        step = 256
        while at < len(data):
            part = bytes(data[at : at + step])
            found = part.find(b"\n")
            if found >= 0:
                line = bytes(data[self.position : at + found])
                self.position = at + found + 1
                return line
            at += step
            step *= 2
        raise EOFError("Ran out of input")

    def _string(self, raw):
        raw = bytes(raw)
        return raw if self.encoding == "bytes" else raw.decode(self.encoding)

    # ---- the machine ----

    def _run(self):
        self.stack = stack = []
        self.memo = memo = {}
        self.user = _user_allowed()
        handlers = _HANDLERS
        data = self.data
        size = len(data)
        while True:
            position = self.position
            if position >= size:
                raise EOFError("Ran out of input")
            code = data[position]
            self.position = position + 1
            # The commonest codes are worth a place of their own.
            if code == 0x71:  # BINPUT
                memo[self._take(1)[0]] = stack[-1]
            elif code == 0x68:  # BINGET
                stack.append(memo[self._take(1)[0]])
            elif code == 0x4B:  # BININT1
                stack.append(self._take(1)[0])
            elif code == 0x28:  # MARK
                stack.append(_MARK)
            elif code == 0x2E:  # STOP
                result = stack.pop()
                if result is _MARK:
                    raise UnpicklingError("unexpected MARK found")
                return result
            else:
                handler = handlers.get(code)
                if handler is None:
                    raise UnpicklingError(f"Unsupported operand {code}")
                handler(self, stack)

    def _pop_mark(self):
        stack = self.stack
        i = len(stack) - 1
        while stack[i] is not _MARK:
            i -= 1
            if i < 0:
                raise UnpicklingError("unexpected MARK found")
        items = stack[i + 1 :]
        del stack[i:]
        return items

    def _global(self, module, name):
        # Protocol 2 writes the names of Python 2.
        module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
        full = f"{module}.{name}"
        if module.partition(".")[0] in _BLOCKED:
            raise UnpicklingError(
                f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked."
            )
        if full in self.user:
            return self.user[full]
        if module == "lamina" or module.startswith("lamina."):
            full = f"torch{module[6:]}.{name}"
        found = _allowed().get(full)
        if found is not None:
            return found
        if full in self.user:
            return self.user[full]
        raise UnpicklingError(
            f"Unsupported global: GLOBAL {full} was not an allowed global by default. "
            f"Please use `torch.serialization.add_safe_globals([{name}])` or the "
            f"`torch.serialization.safe_globals([{name}])` context manager to allowlist this "
            "global if you trust this class/function."
        )

    def _may_call(self, func):
        return any(func is f for f in self.user.values())

    def _reduce(self, func, args):
        if not isinstance(args, tuple):
            raise UnpicklingError("arguments of a call must be a tuple")
        if isinstance(func, type) and func in _CALLED_AS:
            return _CALLED_AS[func](*args)
        if isinstance(func, type) and not self._may_call(func):
            if func is lamina.Size:
                return func(*args)
            if func in (lamina.device, complex):
                return func(*args)
            if func in (str, tuple, list, dict, int, float):
                raise UnpicklingError(
                    f"Trying to call reduce for {func.__name__}, which is not allowed"
                )
            if _is_tensor_class(func):
                return _new_tensor(func, args)
            raise UnpicklingError(f"Trying to call reduce for unrecognized function {func}")
        if not callable(func) or not (self._may_call(func) or _is_listed(func)):
            raise UnpicklingError(f"Trying to call reduce for unrecognized function {func}")
        if func is _storage._load_from_bytes:
            return self._storage_from(args)
        try:
            return func(*args)
        except NotImplementedError as error:
            raise _Passed(error) from None

    def _storage_from(self, args):
        (data,) = args
        if not isinstance(data, (bytes, bytearray)):
            raise UnpicklingError("_load_from_bytes of something that is no bytes")
        return _storage._load_from_bytes(bytes(data))

    def _new(self, cls, args, kwargs=None):
        if not isinstance(args, tuple):
            raise UnpicklingError("arguments of a class must be a tuple")
        if cls in (OrderedDict, Counter, set) and not kwargs:
            return _CALLED_AS[cls](*args)
        if cls is lamina.Size and not kwargs:
            return cls(*args)
        if isinstance(cls, type) and self._may_call(cls):
            return cls.__new__(cls, *args, **(kwargs or {}))
        if isinstance(cls, type) and _is_tensor_class(cls) and not kwargs:
            return _new_tensor(cls, args)
        raise UnpicklingError(
            f"Can not create new object for arbitrary types; {cls} is not allowlisted"
        )

    def _build(self, inst, state):
        kind = type(inst)
        if kind is lamina.Tensor:
            if not isinstance(state, tuple):
                raise UnpicklingError("a tensor's state must be a tuple")
            inst.set_(*state)
        elif _is_listed(kind) and isinstance(inst, lamina.Tensor):
            inst.__setstate__(state)
        elif kind in (OrderedDict, Counter, defaultdict):
            if not isinstance(state, dict):
                raise UnpicklingError("a dict's attributes must be a dict")
            if kind is OrderedDict:
                inst.__dict__.update(state)
        elif self._may_call(kind):
            if hasattr(inst, "__setstate__"):
                inst.__setstate__(state)
            else:
                slots = None
                if isinstance(state, tuple) and len(state) == 2:
                    state, slots = state
                if state:
                    inst.__dict__.update(state)
                for name, value in (slots or {}).items():
                    setattr(inst, name, value)
        else:
            raise UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via "
                f"`add_safe_globals`, but got {kind}"
            )


class _Passed(Exception):
    """Carries an error that the machine must not turn into an UnpicklingError."""


def _is_tensor_class(cls):
    return _is_listed(cls) and issubclass(cls, lamina.Tensor)


def _new_tensor(cls, args):
    """An empty tensor, or one made of another: sizes would ask for memory."""
    if not all(isinstance(a, (lamina.Tensor, bool)) for a in args):
        raise UnpicklingError(f"{cls.__name__} of anything but a tensor is not allowed")
    return cls(*args)


def _is_listed(obj):
    return id(obj) in _listed()


@lru_cache(maxsize=1)
def _listed():
    return frozenset(map(id, _allowed().values()))  # the table keeps them alive


# ---- one function an opcode -----------------------------------------------------------------------

_HANDLERS = {}


def _op(code):
    def add(function):
        _HANDLERS[code[0]] = function
        return function

    return add


def _constant(code, value):
    _HANDLERS[code[0]] = lambda self, stack: stack.append(value)


def _packed(code, form):
    layout = struct.Struct(form)
    _HANDLERS[code[0]] = lambda self, stack: stack.append(layout.unpack(self._take(layout.size))[0])


def _sized(code, form, convert):
    """A length and as many bytes."""
    layout = struct.Struct(form)

    def read(self, stack):
        (n,) = layout.unpack(self._take(layout.size))
        stack.append(convert(self, self._take(n)))

    _HANDLERS[code[0]] = read


def _fresh(code, make):
    _HANDLERS[code[0]] = lambda self, stack: stack.append(make())


_constant(b"N", None)
_constant(b"\x88", True)
_constant(b"\x89", False)
_constant(b")", ())
_fresh(b"]", list)
_fresh(b"}", dict)
_fresh(b"\x8f", set)
_packed(b"J", "<i")
_packed(b"M", "<H")
_packed(b"G", ">d")
_sized(b"X", "<I", lambda self, raw: str(raw, "utf-8", "surrogatepass"))
_sized(b"\x8c", "<B", lambda self, raw: str(raw, "utf-8", "surrogatepass"))
_sized(b"\x8d", "<Q", lambda self, raw: str(raw, "utf-8", "surrogatepass"))
_sized(b"B", "<I", lambda self, raw: bytes(raw))
_sized(b"C", "<B", lambda self, raw: bytes(raw))
_sized(b"\x8e", "<Q", lambda self, raw: bytes(raw))
_sized(b"\x96", "<Q", lambda self, raw: bytearray(raw))
_sized(b"T", "<i", lambda self, raw: self._string(raw))
_sized(b"U", "<B", lambda self, raw: self._string(raw))
_sized(b"\x8a", "<B", lambda self, raw: int.from_bytes(raw, "little", signed=True))
_sized(b"\x8b", "<i", lambda self, raw: int.from_bytes(raw, "little", signed=True))


@_op(b"\x80")
def _proto(self, stack):
    version = self._take(1)[0]
    if version > 5:
        raise UnpicklingError(f"unsupported pickle protocol {version}")


@_op(b"\x95")
def _frame(self, stack):
    (n,) = struct.unpack("<Q", self._take(8))
    if n > len(self.data) - self.position:
        raise EOFError("Ran out of input")


@_op(b"I")
def _int(self, stack):
    line = self._line()
    stack.append({b"00": False, b"01": True}[line] if line in (b"00", b"01") else _decimal(line))


@_op(b"L")
def _long(self, stack):
    stack.append(_decimal(self._line().removesuffix(b"L")))


def _decimal(line):
    if len(line) > 4000:
        raise UnpicklingError("an integer with too many digits")
    return int(line)


@_op(b"F")
def _float(self, stack):
    stack.append(float(self._line()))


@_op(b"V")
def _unicode(self, stack):
    stack.append(str(self._line(), "raw-unicode-escape"))


@_op(b"S")
def _quoted(self, stack):
    from codecs import escape_decode

    line = self._line()
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in (b"'", b'"'):
        raise UnpicklingError("the STRING opcode argument must be quoted")
    stack.append(self._string(escape_decode(line[1:-1])[0]))


@_op(b"t")
def _tuple(self, stack):
    items = self._pop_mark()
    stack.append(tuple(items))


@_op(b"l")
def _list(self, stack):
    items = self._pop_mark()
    stack.append(items)


@_op(b"d")
def _dict(self, stack):
    items = self._pop_mark()
    made = {}
    _put_pairs(made, items)
    stack.append(made)


@_op(b"\x85")
def _tuple1(self, stack):
    stack[-1:] = [(stack[-1],)]


@_op(b"\x86")
def _tuple2(self, stack):
    stack[-2:] = [(stack[-2], stack[-1])]


@_op(b"\x87")
def _tuple3(self, stack):
    stack[-3:] = [(stack[-3], stack[-2], stack[-1])]


@_op(b"a")
def _append(self, stack):
    item = stack.pop()
    _list_of(stack[-1]).append(item)


@_op(b"e")
def _appends(self, stack):
    items = self._pop_mark()
    _list_of(stack[-1]).extend(items)


def _list_of(target):
    if type(target) is not list:
        raise UnpicklingError(f"Can only append to lists, but got {type(target)}")
    return target


def _put_pairs(target, items):
    if len(items) % 2:
        raise UnpicklingError("odd number of items for a dict")
    for i in range(0, len(items), 2):
        _check_key(items[i])
        target[items[i]] = items[i + 1]


def _dict_of(target):
    if not isinstance(target, (dict, OrderedDict, Counter)):
        raise UnpicklingError(f"Can only set items of dicts, but got {type(target)}")
    return target


@_op(b"s")
def _setitem(self, stack):
    value, key = stack.pop(), stack.pop()
    _put_pairs(_dict_of(stack[-1]), [key, value])


@_op(b"u")
def _setitems(self, stack):
    items = self._pop_mark()
    _put_pairs(_dict_of(stack[-1]), items)


@_op(b"\x90")
def _additems(self, stack):
    items = self._pop_mark()
    if type(stack[-1]) is not set:
        raise UnpicklingError(f"Can only add to sets, but got {type(stack[-1])}")
    for item in items:
        _check_key(item)
    stack[-1].update(items)


@_op(b"\x91")
def _frozenset(self, stack):
    items = self._pop_mark()
    for item in items:
        _check_key(item)
    stack.append(frozenset(items))


@_op(b"g")
def _get(self, stack):
    stack.append(self.memo[_decimal(self._line())])


@_op(b"j")
def _long_binget(self, stack):
    stack.append(self.memo[struct.unpack("<I", self._take(4))[0]])


@_op(b"p")
def _put(self, stack):
    self.memo[_decimal(self._line())] = stack[-1]


@_op(b"r")
def _long_binput(self, stack):
    self.memo[struct.unpack("<I", self._take(4))[0]] = stack[-1]


@_op(b"\x94")
def _memoize(self, stack):
    self.memo[len(self.memo)] = stack[-1]


@_op(b"2")
def _dup(self, stack):
    stack.append(stack[-1])


@_op(b"0")
def _pop(self, stack):
    stack.pop()


@_op(b"1")
def _pop_marked(self, stack):
    self._pop_mark()


@_op(b"c")
def _load_global(self, stack):
    module, name = self._line().decode("utf-8"), self._line().decode("utf-8")
    stack.append(self._global(module, name))


@_op(b"\x93")
def _stack_global(self, stack):
    name, module = stack.pop(), stack.pop()
    if type(name) is not str or type(module) is not str:
        raise UnpicklingError("STACK_GLOBAL requires str")
    stack.append(self._global(module, name))


@_op(b"R")
def _call(self, stack):
    args = stack.pop()
    stack[-1] = self._reduce(stack[-1], args)


@_op(b"\x81")
def _newobj(self, stack):
    args, cls = stack.pop(), stack.pop()
    stack.append(self._new(cls, args))


@_op(b"\x92")
def _newobj_ex(self, stack):
    kwargs, args, cls = stack.pop(), stack.pop(), stack.pop()
    if not isinstance(kwargs, dict):
        raise UnpicklingError("keyword arguments must be a dict")
    stack.append(self._new(cls, args, kwargs))


@_op(b"b")
def _build_op(self, stack):
    state = stack.pop()
    self._build(stack[-1], state)


@_op(b"Q")
def _binpersid(self, stack):
    pid = stack.pop()
    try:
        stack.append(self.persistent_load(pid))
    except UnpicklingError:
        raise
    except (RuntimeError, NotImplementedError) as error:
        raise _Passed(error) from None


# ---- for the module torch._weights_only_unpickler -------------------------------------------------


def load(file, *, encoding="ASCII"):
    """One object from a file, without persistent ids."""
    return Unpickler(file, encoding=encoding).load()


def get_globals_in_pkl(file):
    """Full names of everything that a pickle names; nothing is built."""
    import pickletools

    names, strings, memo = set(), [], {}
    data = file if isinstance(file, (bytes, bytearray)) else file.read()
    last = None
    for opcode, arg, _ in pickletools.genops(bytes(data)):
        if opcode.name == "GLOBAL":
            module, _, name = arg.partition(" ")
            names.add(f"{module}.{name}")
        elif opcode.name == "STACK_GLOBAL" and len(strings) >= 2:
            names.add(f"{strings[-2]}.{strings[-1]}")
        elif "UNICODE" in opcode.name:
            strings.append(arg)
            last = arg
        elif opcode.name in ("BINPUT", "LONG_BINPUT", "PUT") and last is not None:
            memo[int(arg)] = last
        elif opcode.name == "MEMOIZE":
            memo[len(memo)] = last
        elif "GET" in opcode.name and isinstance(memo.get(int(arg)), str):
            strings.append(memo[int(arg)])
        if (
            opcode.name not in ("MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT")
            and "UNICODE" not in opcode.name
        ):
            last = None
    return names


def _get_allowed_globals():
    return dict(_allowed())


def _get_user_allowed_globals():
    return _user_allowed()
