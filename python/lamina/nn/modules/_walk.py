"""What is in a module and in those below it, by name."""

from __future__ import annotations


def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
    """Pairs of a dotted name and a member that `get_members_fn` lists for each module; None is left out."""
    seen = set()
    modules = (
        self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
        if recurse
        else ((prefix, self),)
    )
    for path, module in modules:
        for name, member in get_members_fn(module):
            if member is None or member in seen:
                continue
            if remove_duplicate:
                seen.add(member)
            yield (path + "." + name if path else name), member


def parameters(self, recurse=True):
    """Iterate over the parameters, each once; of this module only where `recurse` is False."""
    for _, parameter in self.named_parameters(recurse=recurse):
        yield parameter


def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
    """Iterate over pairs of dotted name and parameter.

    A parameter that several modules share comes once, under its first name, unless `remove_duplicate` is False.
    """
    yield from self._named_members(
        lambda module: module._parameters.items(),
        prefix=prefix,
        recurse=recurse,
        remove_duplicate=remove_duplicate,
    )


def buffers(self, recurse=True):
    """Iterate over the buffers, each once."""
    for _, buffer in self.named_buffers(recurse=recurse):
        yield buffer


def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
    """Iterate over pairs of dotted name and buffer."""
    yield from self._named_members(
        lambda module: module._buffers.items(),
        prefix=prefix,
        recurse=recurse,
        remove_duplicate=remove_duplicate,
    )


def children(self):
    """Iterate over the modules directly below, each once."""
    for _, module in self.named_children():
        yield module


def named_children(self):
    """Iterate over pairs of name and module directly below."""
    seen = set()
    for name, module in self._modules.items():
        if module is not None and module not in seen:
            seen.add(module)
            yield name, module


def modules(self, remove_duplicate=True):
    """Iterate over this module and all below it, each once unless `remove_duplicate` is False."""
    for _, module in self.named_modules(remove_duplicate=remove_duplicate):
        yield module


def named_modules(self, memo=None, prefix="", remove_duplicate=True):
    """Iterate over pairs of dotted name and module, this one first; `memo` has those to leave out."""
    if memo is None:
        memo = set()
    if self not in memo:
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = prefix + "." + name if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)


def _owner(self, target):
    path, _, name = target.rpartition(".")
    return self.get_submodule(path), name


def get_submodule(self, target):
    """The module at a dotted path; this one at "". Raises AttributeError where there is none."""
    module = self
    if target == "":
        return module
    for name in target.split("."):
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        module = getattr(module, name)
        if not isinstance(module, _module_class()):
            raise AttributeError(f"`{name}` is not an nn.Module")
    return module


def _module_class():
    from lamina.nn.modules.module import Module

    return Module


def set_submodule(self, target, module, strict=False):
    """Put a module at a dotted path, in place of what is there.

    With `strict` there must be one already. Raises ValueError for an empty path or where `module` is none,
    AttributeError where the path does not lead to a module.
    """
    if target == "":
        raise ValueError("set_submodule: the path of the module to replace cannot be empty")
    if not isinstance(module, _module_class()):
        raise ValueError(f"set_submodule: expected an nn.Module; got {type(module)}")
    parent, name = _owner(self, target)
    if strict and not hasattr(parent, name):
        raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
    if hasattr(parent, name) and not isinstance(getattr(parent, name), _module_class()):
        raise AttributeError(f"`{name}` is not an nn.Module")
    setattr(parent, name, module)


def get_parameter(self, target):
    """The parameter at a dotted path. Raises AttributeError where there is none."""
    from lamina.nn.parameter import Parameter

    module, name = _owner(self, target)
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    parameter = getattr(module, name)
    if not isinstance(parameter, Parameter):
        raise AttributeError(f"`{name}` is not an nn.Parameter")
    return parameter


def get_buffer(self, target):
    """The buffer at a dotted path. Raises AttributeError where there is none."""
    module, name = _owner(self, target)
    if not hasattr(module, name):
        raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
    if name not in module._buffers:
        raise AttributeError(f"`{name}` is not a buffer")
    return getattr(module, name)
