"""Submodules that run when somebody first looks into them.

They stand in the package from the start, empty, and fill at the first look; plain modules stand in ``sys.modules``
too. A package does not: who imports one of its submodules must run the package first, and the interpreter sees to that
only for a package that is not there yet. A finder then gives it the empty one to fill.
The package itself has no ``__getattr__``: where a module has one, the interpreter cannot specialize
``lamina.add``, and every call of a function pays for the search of its name.
"""

import sys
from _thread import RLock

_Module = type(sys)
_lock = RLock()
_running = set()
_waiting = {}  # packages that have not run, by name


class _LazyModule(
    _Module
):  # a submodule that has not run yet; it becomes an ordinary module when it has
    @property
    def __doc__(self):
        _run(self)
        return _Module.__getattribute__(self, "__doc__")

    def __getattr__(self, name):
        if name in ("__path__", "__cached__"):  # the interpreter asks before it fills the module
            raise AttributeError(name)
        _run(self)
        return _Module.__getattribute__(self, name)

    def __dir__(self):
        _run(self)
        return _Module.__dir__(self)


class _LazyCallable(_LazyModule):  # one that can be called as a function when it has run
    def __call__(self, *args, **kwargs):
        _run(self)
        return self(*args, **kwargs)


class _Finder:
    """Finds the packages that wait."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        module = _waiting.get(name)
        return None if module is None else module.__spec__


def _filling(loader_type):
    """A loader like the given one that fills a module that is there already."""

    class Filling(loader_type):
        plain = loader_type

        def create_module(self, spec):
            return _waiting.get(spec.name)

        def exec_module(self, module):
            super().exec_module(module)
            _settle(module)
            _waiting.pop(module.__name__, None)

    return Filling


def _settle(module):
    """A module that has run is an ordinary one, if it has not given itself a class of its own."""
    if isinstance(module, _LazyModule):
        module.__class__ = _Module


def _run(module):
    if module.__spec__.submodule_search_locations is not None:
        __import__(module.__name__)
        return
    with _lock:  # another thread waits until the module is complete
        name = module.__name__
        if not isinstance(module, _LazyModule) or name in _running:
            return
        _running.add(name)
        try:
            module.__spec__.loader.exec_module(module)
            _settle(module)
        finally:
            _running.discard(name)


def add_submodule(package, name):
    """Make ``package.name`` a module that runs at the first look into it."""
    full = f"{package.__spec__.name}.{name}"  # its __name__ may be another's
    if full in sys.modules:
        return
    loader, spec_type, renaming = package.__spec__.loader, type(package.__spec__), None
    if type(loader).__name__ == "_Renaming":  # lamina._alias: the submodule is loaded its way too
        loader, renaming = loader.loader, type(loader)
    loader_type = getattr(type(loader), "plain", type(loader))
    if loader_type.__name__ != "SourceFileLoader":
        __import__(full)  # from an archive or a frozen program: as its loader does it
        return
    folder = package.__path__[0]
    import os

    path = f"{folder}/{name}"
    is_package = os.path.isdir(path)
    origin = f"{path}/__init__.py" if is_package else f"{path}.py"
    if not os.path.exists(origin):
        return
    if is_package:
        loader_type = _filling(loader_type)
    loader = loader_type(full, origin)
    spec = spec_type(
        full, renaming(loader) if renaming else loader, origin=origin, is_package=is_package
    )
    if is_package:
        spec.submodule_search_locations.append(path)
    spec.has_location = True
    module = (_LazyCallable if name == "explain" else _LazyModule)(full)
    module.__spec__ = spec
    module.__loader__ = spec.loader
    module.__file__ = origin
    module.__package__ = full if is_package else package.__spec__.name
    if not is_package:
        sys.modules[full] = module
    else:
        if _Finder not in sys.meta_path:
            sys.meta_path.insert(0, _Finder)
        _waiting[full] = module
    setattr(package, name, module)


class _Real:
    """A function of a module that may not have run: what `inspect` finds behind its stand-in."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def get(self):
        __import__(self.module)
        return getattr(sys.modules[self.module], self.name)

    def __call__(self, *args, **kwargs):
        return self.get()(*args, **kwargs)

    @property
    def __signature__(self):
        import inspect

        return inspect.signature(self.get())


class _Doc(str):
    """Documentation that is fetched when somebody reads it; `inspect.cleandoc` begins with `expandtabs`."""

    def _text(self):
        return self.real.get().__doc__ or ""

    def expandtabs(self, tabsize=8):
        return self._text().expandtabs(tabsize)

    def splitlines(self, keepends=False):
        return self._text().splitlines(keepends)

    def split(self, sep=None, maxsplit=-1):
        return self._text().split(sep, maxsplit)

    def strip(self, chars=None):
        return self._text().strip(chars)

    def __str__(self):
        return self._text()


def describe(function, module, name, signature=True):
    """Give a stand-in the documentation and signature of what it stands for, to be fetched when they are read."""
    doc = _Doc(f"See ``{module}.{name}``.")
    doc.real = _Real(module, name)
    function.__doc__ = doc
    if signature:
        function.__wrapped__ = doc.real
    return function


def later(module, name):
    """A function of a module that is imported at the first call."""

    def function(*args, **kwargs):
        __import__(module)
        return getattr(sys.modules[module], name)(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    function.__module__ = module.partition(".")[0]
    return describe(function, module, name)
