"""Special functions, with their types."""

from lamina import erfinv as erfinv
from lamina._ops_special import *
