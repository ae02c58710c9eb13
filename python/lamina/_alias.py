"""`import torch` gives Lamina: finder of modules, names of types, metadata of a distribution."""

import importlib.abc
import importlib.machinery
import importlib.metadata
import sys
import types

import lamina
from lamina import _C, _lazy, _missing

VERSION = "2.13.0+lamina"
# Modules whose names are public in the top module only.
_TOP = (
    "lamina.accelerator",
    "lamina._legacy",
    "lamina._type_info",
    "lamina.functional",
    "lamina._settings",
    "lamina._tensor_str",
)
# Modules that keep their own names.
_OWN = ("lamina.demo", "lamina.__main__", "lamina._alias", "lamina._missing", "lamina._lazy")


def _renamed(name):
    own = name in _OWN or name.startswith("lamina.demo.")
    return name if own else _missing.peer_name(name)


class _MissingModule(types.ModuleType):
    """A module of torch that Lamina lacks: its names are stand-ins."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if f"{self.__name__}.{name}" in _missing.peer_names():
            return importlib.import_module(f"{self.__name__}.{name}")
        return _missing.find(self.__name__, name, 2)

    def __dir__(self):
        return sorted(_missing.peer_names().get(self.__name__, ()))


class _SameModule(importlib.abc.Loader):
    """Loads ``torch.x`` by importing ``lamina.x``: one module under two names."""

    def create_module(self, spec):
        self.module = importlib.import_module("lamina" + spec.name.removeprefix("torch"))
        hasattr(self.module, "__lamina__")  # a module that waits runs now
        self.spec = self.module.__spec__
        return self.module

    def exec_module(self, module):
        module.__spec__ = self.spec


class _NoModule(importlib.abc.Loader):
    """Loads a module that Lamina lacks."""

    def create_module(self, spec):
        module = _MissingModule(spec.name)
        module.__doc__ = f"{spec.name} is missing in this release of Lamina; using it raises."
        module.__file__ = __file__
        module.__path__ = []
        return module

    def exec_module(self, module):
        pass


class _Renaming(importlib.abc.Loader):
    """Loads ``lamina.x`` so that what it defines says that it comes from ``torch.x``."""

    def __init__(self, loader):
        self.loader = loader

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        name, kind = module.__spec__.name, type(module)
        code = self.loader.get_code(name)
        waiting = _lazy._waiting.pop(name, None)
        if kind is _lazy._LazyModule:  # what it looks up in itself while it runs is there or not
            module.__class__ = types.ModuleType
        module.__name__ = _renamed(name)
        # Dataclasses look up the module they are defined in by its name.
        sys.modules.setdefault(module.__name__, module)
        try:
            exec(code, module.__dict__)
        except BaseException:
            if sys.modules.get(module.__name__) is module and module.__name__ != name:
                del sys.modules[module.__name__]
            module.__name__, module.__class__ = name, kind
            if waiting is not None:
                _lazy._waiting[name] = waiting
            raise
        if name in _TOP:
            _say_top(module)
        _complete(module)


def _complete(module, peer=None):
    """Names that the module lacks become stand-ins."""
    own = vars(module).get("__getattr__")
    peer = peer or module.__name__
    if peer.partition(".")[0] != "torch":
        return

    def __getattr__(name):
        if own is not None:
            try:
                return own(name)
            except (AttributeError, ModuleNotFoundError):
                pass
        if name.startswith("__"):
            raise AttributeError(f"module {peer!r} has no attribute {name!r}")
        if f"{peer}.{name}" in _missing.peer_names() and _missing._is_written(1):
            return importlib.import_module(f"{peer}.{name}")
        return _missing.find(peer, name, 2)

    module.__getattr__ = __getattr__


class _Finder(importlib.abc.MetaPathFinder):
    """Finds ``torch`` and everything below it, and the distribution's metadata."""

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top == "torch":
            inner = "lamina" + name.removeprefix("torch")
            if inner in sys.modules or _has_module(inner):
                return importlib.machinery.ModuleSpec(name, _SameModule(), is_package=True)
            if name in _missing.peer_names():
                return importlib.machinery.ModuleSpec(name, _NoModule(), is_package=True)
            return None
        if top == "lamina" and name not in _OWN:
            waiting = _lazy._waiting.get(name)
            spec = (
                importlib.machinery.PathFinder.find_spec(name, path, target)
                if waiting is None
                else waiting.__spec__
            )
            if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
                spec.loader = _Renaming(spec.loader)
            return spec
        return None

    def find_distributions(self, context=None):
        name = getattr(context, "name", None)
        if name is None or name.lower() == "torch":
            yield _Distribution()

    def invalidate_caches(self):
        pass


def _has_module(name):
    parent, _, _ = name.rpartition(".")
    try:
        package = importlib.import_module(parent)
    except ModuleNotFoundError:
        return False
    path = getattr(package, "__path__", None)
    return path is not None and importlib.machinery.PathFinder.find_spec(name, path) is not None


class _Distribution(importlib.metadata.Distribution):
    """What installing torch would have left behind, as far as packages read it."""

    _texts = {
        "METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {VERSION}\n"
        "Summary: Lamina under PyTorch's name\n",
        "top_level.txt": "torch\n",
        "RECORD": "torch/__init__.py,,\n",
        "INSTALLER": "lamina\n",
    }

    def read_text(self, filename):
        return self._texts.get(str(filename))

    def locate_file(self, path):
        from pathlib import Path

        return Path(lamina.__file__).parent.parent / path


def install_as_torch():
    """Make ``import torch`` give Lamina, in this process, from now on.

    Every ``torch.x.y`` is the module ``lamina.x.y``; a module or a name that Lamina lacks can be imported and raises
    NotImplementedError where it is used. ``importlib.metadata.version("torch")`` and ``torch.__version__`` say 2.13.0+lamina. Types say
    that they come from torch, as pickles and texts expect. Raises RuntimeError where another torch is loaded already.
    """
    present = sys.modules.get("torch")
    if present is lamina:
        return
    if present is not None:
        raise RuntimeError(
            "install_as_torch: another torch has been imported already; call this first"
        )
    from lamina.torch_version import TorchVersion

    _C._set_public_module("torch")
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "lamina" and name not in _OWN and module is not None:
            _rename(name, module)
    lamina.__version__ = TorchVersion(VERSION)
    sys.modules["torch"] = lamina
    lamina.torch = lamina  # programs write torch.torch
    sys.meta_path.insert(0, _Finder())


def _say_top(module):
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__:
            value.__module__ = "torch"


def _rename(name, module):
    """A module that was loaded under its own name."""
    for value in list(vars(module).values()):
        home = getattr(value, "__module__", None)
        if (
            isinstance(value, (type, types.FunctionType))
            and isinstance(home, str)
            and home.partition(".")[0] == "lamina"
        ):
            try:
                value.__module__ = _renamed(home)
            except TypeError:  # a type of the extension module, which has been told already
                pass
    if isinstance(module, _lazy._LazyModule):
        module.__spec__.loader = _Renaming(module.__spec__.loader)
    elif isinstance(getattr(module, "__file__", None), str) and module.__file__.endswith(".py"):
        module.__name__ = _renamed(name)
        if name in _TOP:
            _say_top(module)
        _complete(module)
    elif module is _C:
        _complete(module, "torch._C")
