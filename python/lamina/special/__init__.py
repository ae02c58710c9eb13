"""Operators of lamina.special."""

import lamina
from lamina import _C

# Operators of the top module that have a name here, too.
_SHARED = {
    "digamma": "digamma",
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "exp2": "exp2",
    "expit": "sigmoid",
    "expm1": "expm1",
    "gammaln": "lgamma",
    "i0": "i0",
    "log1p": "log1p",
    "log_softmax": "log_softmax",
    "logit": "logit",
    "logsumexp": "logsumexp",
    "multigammaln": "mvlgamma",
    "polygamma": "polygamma",
    "psi": "digamma",
    "round": "round",
    "sinc": "sinc",
    "softmax": "softmax",
    "xlogy": "xlogy",
}

for _name, _function in _C._submodule_functions.get("special", {}).items():
    globals()[_name] = _function
for _name, _top in _SHARED.items():
    if hasattr(_C, _top) or _top == "erfinv":  # written in Python
        globals().setdefault(_name, getattr(lamina, _top))
__all__ = sorted(n for n in globals() if not n.startswith("_") and n != "lamina")
