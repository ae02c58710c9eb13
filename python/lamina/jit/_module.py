"""Modules of TorchScript archives as modules of `lamina.nn`."""

import types

import lamina
from lamina import _missing
from lamina.nn import Module, Parameter

from . import _objects, _source


class ScriptModule(Module):
    """A module with a program of its own; `load` makes them. Raises MissingError where one is made anew."""

    def __init__(self, *args, **kwargs):
        raise _missing.missing("torch.jit.ScriptModule")


class RecursiveScriptModule(ScriptModule):
    """A module read from an archive: parameters, buffers and children as ever, methods from its program."""

    _is_script = True

    @classmethod
    def _made(cls, script_class, unit):
        made = cls.__new__(cls)
        Module.__init__(made)
        own = made.__dict__
        own["_script_class"], own["_script_unit"], own["_script_values"] = script_class, unit, {}
        for name, value in script_class.constants.items():
            own["_script_values"][name] = value
        return made

    # ---- what programs read and set ----

    def _script_attribute(self, name):
        own = self.__dict__
        for table in ("_parameters", "_buffers", "_modules", "_script_values"):
            if name in own[table]:
                return own[table][name]
        if name == "training":
            return own["training"]
        method = own["_script_class"].methods.get(name)
        if method is not None:
            return types.MethodType(method, self)
        raise AttributeError(f"'{self.original_name}' object has no attribute '{name}'")

    def _set_script_attribute(self, name, value):
        own, kind = self.__dict__, self.__dict__["_script_class"]
        if name not in kind.attributes:
            raise AttributeError(f"'{kind.short}' object has no attribute '{name}'")
        if name == "training":
            own["training"] = bool(value)
        elif name in kind.parameters:
            if isinstance(value, lamina.Tensor) and not isinstance(value, Parameter):
                value = Parameter(value.detach(), requires_grad=value.requires_grad)
            elif value is not None and not isinstance(value, Parameter):
                raise RuntimeError(f"{kind.name}: the parameter {name} is no tensor")
            own["_parameters"][name] = value
        elif name in kind.buffers:
            if value is not None and not isinstance(value, lamina.Tensor):
                raise RuntimeError(f"{kind.name}: the buffer {name} is no tensor")
            own["_buffers"][name] = value
        elif isinstance(value, Module):
            own["_modules"][name] = value
        elif name != "_is_full_backward_hook":
            own["_script_values"][name] = value

    # ---- what Python sees ----

    def __getattr__(self, name):
        if (
            name in ("_script_class", "_script_values")
            or name not in self.__dict__.get("_script_class", _NOTHING).methods
        ):
            values = self.__dict__.get("_script_values", {})
            if name in values:
                return values[name]
            return super().__getattr__(name)
        return self._script_attribute(name)

    def __setattr__(self, name, value):
        if name in self.__dict__.get("_script_values", ()):
            self._script_values[name] = value
        else:
            super().__setattr__(name, value)

    def forward(self, *args, **kwargs):
        """The program's own forward. Raises NotImplementedError where it has none."""
        method = self._script_class.methods.get("forward")
        if method is None:
            raise NotImplementedError(
                f'Module [{self.original_name}] is missing the required "forward" function'
            )
        return method(self, *args, **kwargs)

    @property
    def original_name(self):
        """The name of the class that was compiled."""
        return self._script_class.short

    @property
    def code(self):
        """The source of forward, as the archive holds it."""
        found = self._script_class.sources.get("forward")
        if found is None:
            raise AttributeError(f"'{self.original_name}' has no forward")
        return _source.text_of(*found)

    def save(self, f, **kwargs):
        """Raises MissingError: archives are only read here."""
        raise _missing.missing("torch.jit.save")

    def _get_name(self):
        return "RecursiveScriptModule"

    def extra_repr(self):
        """The name of the class that was compiled."""
        return f"original_name={self.original_name}"

    def __copy__(self):
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __reduce_ex__(self, protocol):
        raise _missing.missing("pickling of torch.jit.ScriptModule")

    def __deepcopy__(self, memo):
        from copy import deepcopy

        made = type(self).__new__(type(self))
        memo[id(self)] = made
        made.__dict__.update({name: deepcopy(v, memo) for name, v in self.__dict__.items()})
        return made

    def __dir__(self):
        return sorted({*super().__dir__(), *self._script_values, *self._script_class.methods})

    def __bool__(self):
        return True

    def _called(self, name, *args):
        method = self._script_class.methods.get(name)
        if method is None:
            raise NotImplementedError(f"'{self.original_name}' object has no {name}")
        return method(self, *args)

    def __len__(self):
        return self._called("__len__")

    def __contains__(self, key):
        return self._called("__contains__", key)

    def __getitem__(self, index):
        if "__getitem__" not in self._script_class.methods and isinstance(index, int):
            return list(self._modules.values())[index]
        if "__getitem__" not in self._script_class.methods and index in self._modules:
            return self._modules[index]
        return self._called("__getitem__", index)

    def __iter__(self):
        if "__len__" not in self._script_class.nodes:
            raise TypeError(f"'{self.original_name}' object is not iterable")
        return iter(self._modules.values())


_NOTHING = _objects.ScriptClass("", None, None, "")
