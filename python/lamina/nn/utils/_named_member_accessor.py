"""Tensors and modules of a module, reached and replaced by dotted names."""

from __future__ import annotations

from lamina import Tensor

_MISSING = object()


def swap_tensor(module, name, tensor, allow_missing=False):
    """Put a tensor in the place of a parameter, buffer or attribute of a module, and return what was there.

    Plain tensors take the place of parameters. With `allow_missing` there may be nothing, told by a mark, which
    also stands for taking away. Raises KeyError for names with dots, AttributeError where there is nothing,
    TypeError for what is no Tensor.
    """
    from lamina.nn.modules.module import Module

    if not isinstance(module, Module):
        raise TypeError(f"{module} is not an instance of torch.nn.Module")
    if tensor is not _MISSING and not isinstance(tensor, Tensor) and tensor is not None:
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    if "." in name:
        raise KeyError('tensor name can\'t contain "."')
    if name == "":
        raise KeyError('tensor name can\'t be empty string ""')
    for place in (module._parameters, module._buffers):
        if name in place:
            found = place[name]
            if tensor is _MISSING:
                del place[name]
            else:
                place[name] = tensor
            return found
    found = getattr(module, name, _MISSING)
    if found is _MISSING and not allow_missing:
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if found is not _MISSING and not isinstance(found, Tensor) and found is not None:
        raise TypeError(f"attribute `{name}`: {found} is not an instance of torch.Tensor")
    if tensor is _MISSING:
        if found is not _MISSING:
            delattr(module, name)
    else:
        setattr(module, name, tensor)
    return found


def swap_submodule(module, name, submodule):
    """Put a module in the place of a child, and return the child."""
    if "." in name:
        raise KeyError('submodule name can\'t contain "."')
    if name == "":
        raise KeyError('submodule name can\'t be empty string ""')
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    found = module._modules[name]
    module._modules[name] = submodule
    return found


def set_tensor(module, name, tensor):
    """Put a tensor in the place `name` of a module."""
    swap_tensor(module, name, tensor, allow_missing=True)


class NamedMemberAccessor:
    """Reaches what is below a module by dotted names, and remembers the modules on the way."""

    def __init__(self, module):
        self.module = module
        self.memo = {"": module}

    def get_submodule(self, name):
        """The module at a dotted path."""
        if name not in self.memo:
            path, _, last = name.rpartition(".")
            parent = self.get_submodule(path)
            try:
                found = getattr(parent, last)
            except AttributeError:
                raise AttributeError(
                    f"{self.module._get_name()} has no attribute `{name}`"
                ) from None
            from lamina.nn.modules.module import Module

            if not isinstance(found, Module):
                raise TypeError(
                    f"submodule `{name}`: {found} is not an instance of torch.nn.Module"
                )
            self.memo[name] = found
        return self.memo[name]

    def swap_submodule(self, path, value):
        """Put a module at a path, and return what was there."""
        prefix, _, name = path.rpartition(".")
        return swap_submodule(self.get_submodule(prefix), name, value)

    def get_tensor(self, name):
        """The tensor at a dotted path."""
        path, _, last = name.rpartition(".")
        try:
            found = getattr(self.get_submodule(path), last)
        except AttributeError:
            raise AttributeError(f"{self.module._get_name()} has no attribute `{name}`") from None
        if not isinstance(found, Tensor) and found is not None:
            raise TypeError(f"tensor `{name}`: {found} is not an instance of torch.Tensor")
        return found

    def set_tensor(self, name, value):
        """Put a tensor at a path."""
        path, _, last = name.rpartition(".")
        set_tensor(self.get_submodule(path), last, value)

    def del_tensor(self, name):
        """Take away what is at a path."""
        path, _, last = name.rpartition(".")
        try:
            delattr(self.get_submodule(path), last)
        except AttributeError:
            raise AttributeError(f"{self.module._get_name()} has no attribute `{name}`") from None

    def swap_tensor(self, name, value, allow_missing=False):
        """Put a tensor at a path, and return what was there."""
        path, _, last = name.rpartition(".")
        return swap_tensor(self.get_submodule(path), last, value, allow_missing=allow_missing)

    def get_tensors(self, names):
        """The tensors at several paths."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names, values):
        """Put tensors at several paths."""
        names, values = list(names), list(values)
        if len(names) != len(values):
            raise ValueError("names and values must have the same length")
        for name, value in zip(names, values):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors):
        """Put tensors at the paths of a dict."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names):
        """Take away what is at several paths."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(self, names, values, allow_missing=False):
        """Put tensors at several paths, and return what was there."""
        names, values = list(names), list(values)
        if len(names) != len(values):
            raise ValueError("names and values must have the same length")
        return [self.swap_tensor(n, v, allow_missing) for n, v in zip(names, values)]

    def swap_tensors_dict(self, named_tensors, allow_missing=False):
        """Put tensors at the paths of a dict; what was there, and the names that are not there.

        After an error everything is as before.
        """
        found, missing = {}, []
        try:
            for name, tensor in named_tensors.items():
                found[name] = self.swap_tensor(name, tensor, allow_missing=True)
                if found[name] is _MISSING:
                    missing.append(name)
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        except Exception as error:
            for name, tensor in found.items():
                self.swap_tensor(name, tensor, allow_missing=True)
            if isinstance(error, RuntimeError):
                raise
            raise RuntimeError(f"Unable to swap tensors: {error}") from error
        return found, missing

    def check_keys(self, keys):
        """Names that the module has and `keys` lack, and those that it lacks."""
        keys = set(keys)
        valid = {name for name, _ in self.named_tensors(remove_duplicate=False)}
        return sorted(valid - keys), sorted(keys - valid)

    def named_parameters(self, remove_duplicate=True):
        """Pairs of name and parameter."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate=True):
        """Pairs of name and buffer."""
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate=True):
        """Pairs of name and parameter or buffer."""
        yield from self.module.named_parameters(remove_duplicate=remove_duplicate)
        yield from self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_modules(self, remove_duplicate=True):
        """Pairs of name and module."""
        yield from self.module.named_modules(remove_duplicate=remove_duplicate)
