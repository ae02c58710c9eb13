"""Building blocks of networks, by name."""

from lamina.nn import attention as attention
from lamina.nn import functional as functional
from lamina.nn import init as init
from lamina.nn import modules as modules
from lamina.nn import parallel as parallel
from lamina.nn import parameter as parameter
from lamina.nn import utils as utils
from lamina.nn.modules import *
from lamina.nn.parallel import DataParallel as DataParallel
from lamina.nn.parameter import Buffer as Buffer
from lamina.nn.parameter import Parameter as Parameter
from lamina.nn.parameter import UninitializedBuffer as UninitializedBuffer
from lamina.nn.parameter import UninitializedParameter as UninitializedParameter
