"""Modules that hold others."""

from __future__ import annotations

import operator
from collections import OrderedDict, abc
from itertools import islice

from lamina import Tensor
from lamina.nn.modules.module import Module, _addindent
from lamina.nn.parameter import Parameter

__all__ = ["Container", "ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


class Container(Module):
    """Modules by key word; old, use ModuleDict."""

    def __init__(self, **kwargs):
        super().__init__()
        import warnings

        warnings.warn(
            "nn.Container is deprecated; derive from nn.Module", FutureWarning, stacklevel=2
        )
        for name, module in kwargs.items():
            self.add_module(name, module)


def _index(op, index, size):
    """A whole number within [-size, size), as a place from the start."""
    index = operator.index(index)
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of range")
    return index + size if index < 0 else index


class Sequential(Module):
    """Modules that pass their result on, one to the next.

    ``Sequential(a, b, c)``, or ``Sequential(OrderedDict([("first", a), ("second", b)]))`` for names.
    """

    _modules: dict

    def __init__(self, *args):
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def _get_item_by_idx(self, iterator, idx):
        return next(islice(iterator, _index("Sequential", idx, len(self)), None))

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return self.__class__(OrderedDict(list(self._modules.items())[idx]))
        return self._get_item_by_idx(self._modules.values(), idx)

    def __setitem__(self, idx, module):
        setattr(self, self._get_item_by_idx(self._modules.keys(), idx), module)

    def __delitem__(self, idx):
        if isinstance(idx, slice):
            for name in list(self._modules)[idx]:
                delattr(self, name)
        else:
            delattr(self, self._get_item_by_idx(self._modules.keys(), idx))
        self._renumber()

    def _renumber(self):
        self._modules = {str(i): m for i, m in enumerate(self._modules.values())}

    def __len__(self):
        return len(self._modules)

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, but "
                f"{type(other)} is given."
            )
        return Sequential(*self, *other)

    def __iadd__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(
                "add operator supports only objects of Sequential class, but "
                f"{type(other)} is given."
            )
        for module in list(other):
            self.append(module)
        return self

    def _times(self, other):
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return other

    def __mul__(self, other):
        return Sequential(*(list(self) * self._times(other)))

    __rmul__ = __mul__

    def __imul__(self, other):
        modules = list(self)
        for _ in range(self._times(other) - 1):
            self.extend(modules)
        return self

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def __iter__(self):
        return iter(self._modules.values())

    def forward(self, input):
        for module in self._modules.values():
            input = module(input)
        return input

    def pop(self, key):
        """Take the module at a place out, and return it."""
        module = self[key]
        del self[key]
        return module

    def append(self, module):
        """Add a module at the end. Returns the container."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index, module):
        """Put a module before the place `index`. Returns the container.

        Raises TypeError where `module` is none, IndexError where the place is outside.
        """
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._modules = {str(i): m for i, m in enumerate(modules)}
        return self

    def extend(self, sequential):
        """Add the modules of an iterable at the end. Returns the container."""
        for module in list(sequential):
            self.append(module)
        return self


class ModuleList(Module):
    """Modules in a list, registered; it has no forward.

    Parameters
    ----------
    modules : iterable of Module, optional
    """

    _modules: dict

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self += modules

    def _get_abs_string_index(self, idx):
        return str(_index("ModuleList", idx, len(self)))

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return self.__class__(list(self._modules.values())[idx])
        return self._modules[self._get_abs_string_index(idx)]

    def __setitem__(self, idx, module):
        setattr(self, self._get_abs_string_index(idx), module)

    def __delitem__(self, idx):
        if isinstance(idx, slice):
            for k in range(len(self._modules))[idx]:
                delattr(self, str(k))
        else:
            delattr(self, self._get_abs_string_index(idx))
        self._modules = {str(i): m for i, m in enumerate(self._modules.values())}

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        combined = ModuleList()
        for i, module in enumerate([*self, *other]):
            combined.add_module(str(i), module)
        return combined

    def __repr__(self):
        texts = [repr(item) for item in self]
        if not texts:
            return self._get_name() + "()"
        # Equal neighbours are told once, with their number.
        runs = []
        for i, text in enumerate(texts):
            if runs and runs[-1][2] == text:
                runs[-1][1] = i
            else:
                runs.append([i, i, text])
        lines = [
            _addindent(f"({a}): {text}" if a == b else f"({a}-{b}): {b - a + 1} x {text}", 2)
            for a, b, text in runs
        ]
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def insert(self, index, module):
        """Put a module before the place `index`."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._modules = {str(i): m for i, m in enumerate(modules)}

    def append(self, module):
        """Add a module at the end. Returns the list."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key):
        """Take the module at a place out, and return it."""
        module = self[key]
        del self[key]
        return module

    def extend(self, modules):
        """Add the modules of an iterable at the end. Returns the list. Raises TypeError for what is no iterable."""
        if not isinstance(modules, abc.Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                + type(modules).__name__
            )
        start = len(self)
        for i, module in enumerate(list(modules)):
            self.add_module(str(start + i), module)
        return self


class ModuleDict(Module):
    """Modules in a dict, registered; it has no forward.

    Parameters
    ----------
    modules : mapping of str to Module, or iterable of pairs, optional
    """

    _modules: dict

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Take all modules out."""
        self._modules.clear()

    def pop(self, key):
        """Take the module of a key out, and return it."""
        module = self[key]
        del self[key]
        return module

    def keys(self):
        """The keys."""
        return self._modules.keys()

    def items(self):
        """Pairs of key and module."""
        return self._modules.items()

    def values(self):
        """The modules."""
        return self._modules.values()

    def update(self, modules):
        """Add the modules of a mapping or of pairs; those of the same key are replaced.

        Raises TypeError for what is neither and for parts that are no pairs, ValueError for pairs of another length.
        """
        if not isinstance(modules, abc.Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                + type(modules).__name__
            )
        if isinstance(modules, (OrderedDict, ModuleDict, abc.Mapping)):
            for key, module in modules.items():
                self[key] = module
            return
        for i, pair in enumerate(modules):
            if not isinstance(pair, abc.Iterable):
                raise TypeError(
                    f"ModuleDict update sequence element #{i} should be Iterable; is "
                    + type(pair).__name__
                )
            pair = tuple(pair)
            if len(pair) != 2:
                raise ValueError(
                    f"ModuleDict update sequence element #{i} has length {len(pair)}; 2 is required"
                )
            self[pair[0]] = pair[1]


def _described(value, by_dtype=True):
    """A parameter or another value in the text of a container."""
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    size = "x".join(str(s) for s in value.size())
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    place = "" if value.device.type == "cpu" else f" ({value.device})"
    dtype = value.dtype if by_dtype and isinstance(value, Parameter) else value.type()
    return f"{kind} containing: [{dtype} of size {size}{place}]"


def _wrapped(value):
    """Plain tensors become parameters in the containers of parameters."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


class ParameterList(Module):
    """Parameters in a list, registered; tensors become parameters, other values stay as they are.

    Parameters
    ----------
    values : iterable, optional
    """

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def _get_abs_string_index(self, idx):
        return str(_index("ParameterList", idx, len(self)))

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            result = self.__class__()
            for i in range(*idx.indices(len(self))):
                result.append(self[i])
            return result
        return getattr(self, self._get_abs_string_index(idx))

    def __setitem__(self, idx, param):
        setattr(self, self._get_abs_string_index(idx), _wrapped(param))

    def __len__(self):
        return self._size

    def __iter__(self):
        return (self[i] for i in range(len(self)))

    def __iadd__(self, parameters):
        return self.extend(parameters)

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value):
        """Add a value at the end. Returns the list."""
        place = len(self)
        self._size += 1
        self[place] = value
        return self

    def extend(self, values):
        """Add the values of an iterable at the end. Returns the list. Raises TypeError for what is no iterable."""
        if not isinstance(values, abc.Iterable) or isinstance(values, Tensor):
            raise TypeError(
                f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}"
            )
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self):
        return "\n".join(f"  ({i}): {_described(value)}" for i, value in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """Parameters in a dict, registered, in order; tensors become parameters, other values stay as they are.

    Parameters
    ----------
    parameters : mapping or iterable of pairs, optional
    """

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key):
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string "
                f"(type is '{type(key).__name__}')."
            )
        return key

    def __getitem__(self, key):
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key, value):
        name = self._key_to_attr(key)
        self._keys[key] = None
        setattr(self, name, _wrapped(value))

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def copy(self):
        """Another dict of the same parameters."""
        return ParameterDict(OrderedDict((k, self[k]) for k in self._keys))

    def setdefault(self, key, default=None):
        """The value of a key, which is `default` from now on where there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        """Take everything out."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key):
        """Take the value of a key out, and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Take the last pair out, and return it."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key, default=None):
        """The value of a key, or `default`."""
        return self[key] if key in self else default

    def fromkeys(self, keys, default=None):
        """A new dict with these keys, all of the same value."""
        return ParameterDict((k, default) for k in keys)

    def keys(self):
        """The keys."""
        return self._keys.keys()

    def items(self):
        """Pairs of key and value."""
        return ((k, self[k]) for k in self._keys)

    def values(self):
        """The values."""
        return (self[k] for k in self._keys)

    def update(self, parameters):
        """Add the values of a mapping or of pairs; see ModuleDict.update for what is raised."""
        if not isinstance(parameters, abc.Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but got "
                + type(parameters).__name__
            )
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            for key, value in parameters.items():
                self[key] = value
            return
        if isinstance(parameters, abc.Mapping):
            for key, value in sorted(parameters.items()):
                self[key] = value
            return
        for i, pair in enumerate(parameters):
            if not isinstance(pair, abc.Iterable):
                raise TypeError(
                    f"ParameterDict update sequence element #{i} should be Iterable; is "
                    + type(pair).__name__
                )
            pair = tuple(pair)
            if len(pair) != 2:
                raise ValueError(
                    f"ParameterDict update sequence element #{i} has length {len(pair)}; "
                    "2 is required"
                )
            self[pair[0]] = pair[1]

    def extra_repr(self):
        return "\n".join(f"  ({key}): {_described(value, False)}" for key, value in self.items())

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other):
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other):
        result = other.copy()
        result.update(self)
        return result

    def __ior__(self, other):
        self.update(other)
        return self
