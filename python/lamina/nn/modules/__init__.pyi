"""All modules, by name."""

from typing import Any

from lamina.nn.modules.activation import CELU as CELU
from lamina.nn.modules.activation import ELU as ELU
from lamina.nn.modules.activation import GELU as GELU
from lamina.nn.modules.activation import GLU as GLU
from lamina.nn.modules.activation import SELU as SELU
from lamina.nn.modules.activation import Hardshrink as Hardshrink
from lamina.nn.modules.activation import Hardsigmoid as Hardsigmoid
from lamina.nn.modules.activation import Hardswish as Hardswish
from lamina.nn.modules.activation import Hardtanh as Hardtanh
from lamina.nn.modules.activation import LeakyReLU as LeakyReLU
from lamina.nn.modules.activation import LogSigmoid as LogSigmoid
from lamina.nn.modules.activation import LogSoftmax as LogSoftmax
from lamina.nn.modules.activation import Mish as Mish
from lamina.nn.modules.activation import MultiheadAttention as MultiheadAttention
from lamina.nn.modules.activation import PReLU as PReLU
from lamina.nn.modules.activation import ReLU as ReLU
from lamina.nn.modules.activation import ReLU6 as ReLU6
from lamina.nn.modules.activation import RReLU as RReLU
from lamina.nn.modules.activation import Sigmoid as Sigmoid
from lamina.nn.modules.activation import SiLU as SiLU
from lamina.nn.modules.activation import Softmax as Softmax
from lamina.nn.modules.activation import Softmax2d as Softmax2d
from lamina.nn.modules.activation import Softmin as Softmin
from lamina.nn.modules.activation import Softplus as Softplus
from lamina.nn.modules.activation import Softshrink as Softshrink
from lamina.nn.modules.activation import Softsign as Softsign
from lamina.nn.modules.activation import Tanh as Tanh
from lamina.nn.modules.activation import Tanhshrink as Tanhshrink
from lamina.nn.modules.activation import Threshold as Threshold
from lamina.nn.modules.adaptive import AdaptiveLogSoftmaxWithLoss as AdaptiveLogSoftmaxWithLoss
from lamina.nn.modules.batchnorm import BatchNorm1d as BatchNorm1d
from lamina.nn.modules.batchnorm import BatchNorm2d as BatchNorm2d
from lamina.nn.modules.batchnorm import BatchNorm3d as BatchNorm3d
from lamina.nn.modules.batchnorm import LazyBatchNorm1d as LazyBatchNorm1d
from lamina.nn.modules.batchnorm import LazyBatchNorm2d as LazyBatchNorm2d
from lamina.nn.modules.batchnorm import LazyBatchNorm3d as LazyBatchNorm3d
from lamina.nn.modules.batchnorm import SyncBatchNorm as SyncBatchNorm
from lamina.nn.modules.channelshuffle import ChannelShuffle as ChannelShuffle
from lamina.nn.modules.container import Container as Container
from lamina.nn.modules.container import ModuleDict as ModuleDict
from lamina.nn.modules.container import ModuleList as ModuleList
from lamina.nn.modules.container import ParameterDict as ParameterDict
from lamina.nn.modules.container import ParameterList as ParameterList
from lamina.nn.modules.container import Sequential as Sequential
from lamina.nn.modules.conv import Conv1d as Conv1d
from lamina.nn.modules.conv import Conv2d as Conv2d
from lamina.nn.modules.conv import Conv3d as Conv3d
from lamina.nn.modules.conv import ConvTranspose1d as ConvTranspose1d
from lamina.nn.modules.conv import ConvTranspose2d as ConvTranspose2d
from lamina.nn.modules.conv import ConvTranspose3d as ConvTranspose3d
from lamina.nn.modules.distance import CosineSimilarity as CosineSimilarity
from lamina.nn.modules.distance import PairwiseDistance as PairwiseDistance
from lamina.nn.modules.dropout import AlphaDropout as AlphaDropout
from lamina.nn.modules.dropout import Dropout as Dropout
from lamina.nn.modules.dropout import Dropout1d as Dropout1d
from lamina.nn.modules.dropout import Dropout2d as Dropout2d
from lamina.nn.modules.dropout import Dropout3d as Dropout3d
from lamina.nn.modules.dropout import FeatureAlphaDropout as FeatureAlphaDropout
from lamina.nn.modules.flatten import Flatten as Flatten
from lamina.nn.modules.flatten import Unflatten as Unflatten
from lamina.nn.modules.fold import Fold as Fold
from lamina.nn.modules.fold import Unfold as Unfold
from lamina.nn.modules.instancenorm import InstanceNorm1d as InstanceNorm1d
from lamina.nn.modules.instancenorm import InstanceNorm2d as InstanceNorm2d
from lamina.nn.modules.instancenorm import InstanceNorm3d as InstanceNorm3d
from lamina.nn.modules.instancenorm import LazyInstanceNorm1d as LazyInstanceNorm1d
from lamina.nn.modules.instancenorm import LazyInstanceNorm2d as LazyInstanceNorm2d
from lamina.nn.modules.instancenorm import LazyInstanceNorm3d as LazyInstanceNorm3d
from lamina.nn.modules.linear import Bilinear as Bilinear
from lamina.nn.modules.linear import Identity as Identity
from lamina.nn.modules.linear import LazyLinear as LazyLinear
from lamina.nn.modules.linear import Linear as Linear
from lamina.nn.modules.linear_cross_entropy_options import (
    LinearCrossEntropyOptions as LinearCrossEntropyOptions,
)
from lamina.nn.modules.loss import BCELoss as BCELoss
from lamina.nn.modules.loss import BCEWithLogitsLoss as BCEWithLogitsLoss
from lamina.nn.modules.loss import CosineEmbeddingLoss as CosineEmbeddingLoss
from lamina.nn.modules.loss import CrossEntropyLoss as CrossEntropyLoss
from lamina.nn.modules.loss import CTCLoss as CTCLoss
from lamina.nn.modules.loss import GaussianNLLLoss as GaussianNLLLoss
from lamina.nn.modules.loss import HingeEmbeddingLoss as HingeEmbeddingLoss
from lamina.nn.modules.loss import HuberLoss as HuberLoss
from lamina.nn.modules.loss import KLDivLoss as KLDivLoss
from lamina.nn.modules.loss import L1Loss as L1Loss
from lamina.nn.modules.loss import LinearCrossEntropyLoss as LinearCrossEntropyLoss
from lamina.nn.modules.loss import MarginRankingLoss as MarginRankingLoss
from lamina.nn.modules.loss import MSELoss as MSELoss
from lamina.nn.modules.loss import MultiLabelMarginLoss as MultiLabelMarginLoss
from lamina.nn.modules.loss import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from lamina.nn.modules.loss import MultiMarginLoss as MultiMarginLoss
from lamina.nn.modules.loss import NLLLoss as NLLLoss
from lamina.nn.modules.loss import NLLLoss2d as NLLLoss2d
from lamina.nn.modules.loss import PoissonNLLLoss as PoissonNLLLoss
from lamina.nn.modules.loss import SmoothL1Loss as SmoothL1Loss
from lamina.nn.modules.loss import SoftMarginLoss as SoftMarginLoss
from lamina.nn.modules.loss import TripletMarginLoss as TripletMarginLoss
from lamina.nn.modules.loss import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from lamina.nn.modules.module import Module as Module
from lamina.nn.modules.normalization import CrossMapLRN2d as CrossMapLRN2d
from lamina.nn.modules.normalization import GroupNorm as GroupNorm
from lamina.nn.modules.normalization import LayerNorm as LayerNorm
from lamina.nn.modules.normalization import LocalResponseNorm as LocalResponseNorm
from lamina.nn.modules.normalization import RMSNorm as RMSNorm
from lamina.nn.modules.padding import CircularPad1d as CircularPad1d
from lamina.nn.modules.padding import CircularPad2d as CircularPad2d
from lamina.nn.modules.padding import CircularPad3d as CircularPad3d
from lamina.nn.modules.padding import ConstantPad1d as ConstantPad1d
from lamina.nn.modules.padding import ConstantPad2d as ConstantPad2d
from lamina.nn.modules.padding import ConstantPad3d as ConstantPad3d
from lamina.nn.modules.padding import ReflectionPad1d as ReflectionPad1d
from lamina.nn.modules.padding import ReflectionPad2d as ReflectionPad2d
from lamina.nn.modules.padding import ReflectionPad3d as ReflectionPad3d
from lamina.nn.modules.padding import ReplicationPad1d as ReplicationPad1d
from lamina.nn.modules.padding import ReplicationPad2d as ReplicationPad2d
from lamina.nn.modules.padding import ReplicationPad3d as ReplicationPad3d
from lamina.nn.modules.padding import ZeroPad1d as ZeroPad1d
from lamina.nn.modules.padding import ZeroPad2d as ZeroPad2d
from lamina.nn.modules.padding import ZeroPad3d as ZeroPad3d
from lamina.nn.modules.pixelshuffle import PixelShuffle as PixelShuffle
from lamina.nn.modules.pixelshuffle import PixelUnshuffle as PixelUnshuffle
from lamina.nn.modules.pooling import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from lamina.nn.modules.pooling import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from lamina.nn.modules.pooling import AdaptiveAvgPool3d as AdaptiveAvgPool3d
from lamina.nn.modules.pooling import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from lamina.nn.modules.pooling import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from lamina.nn.modules.pooling import AdaptiveMaxPool3d as AdaptiveMaxPool3d
from lamina.nn.modules.pooling import AvgPool1d as AvgPool1d
from lamina.nn.modules.pooling import AvgPool2d as AvgPool2d
from lamina.nn.modules.pooling import AvgPool3d as AvgPool3d
from lamina.nn.modules.pooling import FractionalMaxPool2d as FractionalMaxPool2d
from lamina.nn.modules.pooling import FractionalMaxPool3d as FractionalMaxPool3d
from lamina.nn.modules.pooling import LPPool1d as LPPool1d
from lamina.nn.modules.pooling import LPPool2d as LPPool2d
from lamina.nn.modules.pooling import LPPool3d as LPPool3d
from lamina.nn.modules.pooling import MaxPool1d as MaxPool1d
from lamina.nn.modules.pooling import MaxPool2d as MaxPool2d
from lamina.nn.modules.pooling import MaxPool3d as MaxPool3d
from lamina.nn.modules.pooling import MaxUnpool1d as MaxUnpool1d
from lamina.nn.modules.pooling import MaxUnpool2d as MaxUnpool2d
from lamina.nn.modules.pooling import MaxUnpool3d as MaxUnpool3d
from lamina.nn.modules.rnn import GRU as GRU
from lamina.nn.modules.rnn import LSTM as LSTM
from lamina.nn.modules.rnn import RNN as RNN
from lamina.nn.modules.rnn import GRUCell as GRUCell
from lamina.nn.modules.rnn import LSTMCell as LSTMCell
from lamina.nn.modules.rnn import RNNBase as RNNBase
from lamina.nn.modules.rnn import RNNCell as RNNCell
from lamina.nn.modules.rnn import RNNCellBase as RNNCellBase
from lamina.nn.modules.sparse import Embedding as Embedding
from lamina.nn.modules.sparse import EmbeddingBag as EmbeddingBag
from lamina.nn.modules.transformer import Transformer as Transformer
from lamina.nn.modules.transformer import TransformerDecoder as TransformerDecoder
from lamina.nn.modules.transformer import TransformerDecoderLayer as TransformerDecoderLayer
from lamina.nn.modules.transformer import TransformerEncoder as TransformerEncoder
from lamina.nn.modules.transformer import TransformerEncoderLayer as TransformerEncoderLayer
from lamina.nn.modules.upsampling import Upsample as Upsample
from lamina.nn.modules.upsampling import UpsamplingBilinear2d as UpsamplingBilinear2d
from lamina.nn.modules.upsampling import UpsamplingNearest2d as UpsamplingNearest2d

class LazyConv1d(Conv1d):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = ...,
        padding: int | tuple[int, ...] = ...,
        dilation: int | tuple[int, ...] = ...,
        groups: int = ...,
        bias: bool = ...,
        padding_mode: str = ...,
        device: Any = ...,
        dtype: Any = ...,
    ) -> None: ...

class LazyConv2d(Conv2d):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = ...,
        padding: int | tuple[int, ...] = ...,
        dilation: int | tuple[int, ...] = ...,
        groups: int = ...,
        bias: bool = ...,
        padding_mode: str = ...,
        device: Any = ...,
        dtype: Any = ...,
    ) -> None: ...

class LazyConv3d(Conv3d):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = ...,
        padding: int | tuple[int, ...] = ...,
        dilation: int | tuple[int, ...] = ...,
        groups: int = ...,
        bias: bool = ...,
        padding_mode: str = ...,
        device: Any = ...,
        dtype: Any = ...,
    ) -> None: ...

class LazyConvTranspose1d(ConvTranspose1d):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = ...,
        padding: int | tuple[int, ...] = ...,
        output_padding: int | tuple[int, ...] = ...,
        groups: int = ...,
        bias: bool = ...,
        dilation: int | tuple[int, ...] = ...,
        padding_mode: str = ...,
        device: Any = ...,
        dtype: Any = ...,
    ) -> None: ...

class LazyConvTranspose2d(ConvTranspose2d):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = ...,
        padding: int | tuple[int, ...] = ...,
        output_padding: int | tuple[int, ...] = ...,
        groups: int = ...,
        bias: bool = ...,
        dilation: int | tuple[int, ...] = ...,
        padding_mode: str = ...,
        device: Any = ...,
        dtype: Any = ...,
    ) -> None: ...

class LazyConvTranspose3d(ConvTranspose3d):
    def __init__(
        self,
        out_channels: int,
        kernel_size: int | tuple[int, ...],
        stride: int | tuple[int, ...] = ...,
        padding: int | tuple[int, ...] = ...,
        output_padding: int | tuple[int, ...] = ...,
        groups: int = ...,
        bias: bool = ...,
        dilation: int | tuple[int, ...] = ...,
        padding_mode: str = ...,
        device: Any = ...,
        dtype: Any = ...,
    ) -> None: ...
