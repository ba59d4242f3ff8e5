"""Functions of networks, under the names of torch.nn.functional.

They call the core's operators, each of which is a range; these functions are not ranges.
"""

from __future__ import annotations

from opscope.tensor.composed.linear import pdist as pdist
from opscope.tensor.composed.reductions import cosine_similarity as cosine_similarity
from opscope.tensor.nn.functional.activation import (
    celu as celu,
)
from opscope.tensor.nn.functional.activation import (
    dropout as dropout,
)
from opscope.tensor.nn.functional.activation import (
    dropout1d as dropout1d,
)
from opscope.tensor.nn.functional.activation import (
    dropout2d as dropout2d,
)
from opscope.tensor.nn.functional.activation import (
    dropout3d as dropout3d,
)
from opscope.tensor.nn.functional.activation import (
    elu as elu,
)
from opscope.tensor.nn.functional.activation import (
    gelu as gelu,
)
from opscope.tensor.nn.functional.activation import (
    glu as glu,
)
from opscope.tensor.nn.functional.activation import (
    gumbel_softmax as gumbel_softmax,
)
from opscope.tensor.nn.functional.activation import (
    hardshrink as hardshrink,
)
from opscope.tensor.nn.functional.activation import (
    hardsigmoid as hardsigmoid,
)
from opscope.tensor.nn.functional.activation import (
    hardswish as hardswish,
)
from opscope.tensor.nn.functional.activation import (
    hardtanh as hardtanh,
)
from opscope.tensor.nn.functional.activation import (
    leaky_relu as leaky_relu,
)
from opscope.tensor.nn.functional.activation import (
    log_softmax as log_softmax,
)
from opscope.tensor.nn.functional.activation import (
    logsigmoid as logsigmoid,
)
from opscope.tensor.nn.functional.activation import (
    mish as mish,
)
from opscope.tensor.nn.functional.activation import (
    prelu as prelu,
)
from opscope.tensor.nn.functional.activation import (
    relu as relu,
)
from opscope.tensor.nn.functional.activation import (
    relu6 as relu6,
)
from opscope.tensor.nn.functional.activation import (
    relu_ as relu_,
)
from opscope.tensor.nn.functional.activation import (
    selu as selu,
)
from opscope.tensor.nn.functional.activation import (
    sigmoid as sigmoid,
)
from opscope.tensor.nn.functional.activation import (
    silu as silu,
)
from opscope.tensor.nn.functional.activation import (
    softmax as softmax,
)
from opscope.tensor.nn.functional.activation import (
    softmin as softmin,
)
from opscope.tensor.nn.functional.activation import (
    softplus as softplus,
)
from opscope.tensor.nn.functional.activation import (
    softshrink as softshrink,
)
from opscope.tensor.nn.functional.activation import (
    softsign as softsign,
)
from opscope.tensor.nn.functional.activation import (
    tanh as tanh,
)
from opscope.tensor.nn.functional.activation import (
    tanhshrink as tanhshrink,
)
from opscope.tensor.nn.functional.activation import (
    threshold as threshold,
)
from opscope.tensor.nn.functional.bags import (
    embedding_bag as embedding_bag,
)
from opscope.tensor.nn.functional.convolution import (
    conv1d as conv1d,
)
from opscope.tensor.nn.functional.convolution import (
    conv2d as conv2d,
)
from opscope.tensor.nn.functional.convolution import (
    conv_transpose1d as conv_transpose1d,
)
from opscope.tensor.nn.functional.convolution import (
    conv_transpose2d as conv_transpose2d,
)
from opscope.tensor.nn.functional.convolution import (
    unfold as unfold,
)
from opscope.tensor.nn.functional.grids import (
    affine_grid as affine_grid,
)
from opscope.tensor.nn.functional.grids import (
    grid_sample as grid_sample,
)
from opscope.tensor.nn.functional.loss import (
    binary_cross_entropy as binary_cross_entropy,
)
from opscope.tensor.nn.functional.loss import (
    binary_cross_entropy_with_logits as binary_cross_entropy_with_logits,
)
from opscope.tensor.nn.functional.loss import (
    cosine_embedding_loss as cosine_embedding_loss,
)
from opscope.tensor.nn.functional.loss import (
    cross_entropy as cross_entropy,
)
from opscope.tensor.nn.functional.loss import (
    gaussian_nll_loss as gaussian_nll_loss,
)
from opscope.tensor.nn.functional.loss import (
    hinge_embedding_loss as hinge_embedding_loss,
)
from opscope.tensor.nn.functional.loss import (
    huber_loss as huber_loss,
)
from opscope.tensor.nn.functional.loss import (
    kl_div as kl_div,
)
from opscope.tensor.nn.functional.loss import (
    l1_loss as l1_loss,
)
from opscope.tensor.nn.functional.loss import (
    margin_ranking_loss as margin_ranking_loss,
)
from opscope.tensor.nn.functional.loss import (
    mse_loss as mse_loss,
)
from opscope.tensor.nn.functional.loss import (
    nll_loss as nll_loss,
)
from opscope.tensor.nn.functional.loss import (
    pairwise_distance as pairwise_distance,
)
from opscope.tensor.nn.functional.loss import (
    poisson_nll_loss as poisson_nll_loss,
)
from opscope.tensor.nn.functional.loss import (
    smooth_l1_loss as smooth_l1_loss,
)
from opscope.tensor.nn.functional.loss import (
    soft_margin_loss as soft_margin_loss,
)
from opscope.tensor.nn.functional.loss import (
    triplet_margin_loss as triplet_margin_loss,
)
from opscope.tensor.nn.functional.normalization import (
    batch_norm as batch_norm,
)
from opscope.tensor.nn.functional.normalization import (
    bilinear as bilinear,
)
from opscope.tensor.nn.functional.normalization import (
    embedding as embedding,
)
from opscope.tensor.nn.functional.normalization import (
    group_norm as group_norm,
)
from opscope.tensor.nn.functional.normalization import (
    instance_norm as instance_norm,
)
from opscope.tensor.nn.functional.normalization import (
    layer_norm as layer_norm,
)
from opscope.tensor.nn.functional.normalization import (
    linear as linear,
)
from opscope.tensor.nn.functional.normalization import (
    local_response_norm as local_response_norm,
)
from opscope.tensor.nn.functional.normalization import (
    normalize as normalize,
)
from opscope.tensor.nn.functional.normalization import (
    one_hot as one_hot,
)
from opscope.tensor.nn.functional.normalization import (
    rms_norm as rms_norm,
)
from opscope.tensor.nn.functional.normalization import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from opscope.tensor.nn.functional.padding import (
    pad as pad,
)
from opscope.tensor.nn.functional.pooling import (
    adaptive_avg_pool1d as adaptive_avg_pool1d,
)
from opscope.tensor.nn.functional.pooling import (
    adaptive_avg_pool2d as adaptive_avg_pool2d,
)
from opscope.tensor.nn.functional.pooling import (
    adaptive_max_pool1d as adaptive_max_pool1d,
)
from opscope.tensor.nn.functional.pooling import (
    adaptive_max_pool2d as adaptive_max_pool2d,
)
from opscope.tensor.nn.functional.pooling import (
    avg_pool1d as avg_pool1d,
)
from opscope.tensor.nn.functional.pooling import (
    avg_pool2d as avg_pool2d,
)
from opscope.tensor.nn.functional.pooling import (
    max_pool1d as max_pool1d,
)
from opscope.tensor.nn.functional.pooling import (
    max_pool2d as max_pool2d,
)
from opscope.tensor.nn.functional.resize import (
    interpolate as interpolate,
)
from opscope.tensor.nn.functional.resize import (
    pixel_shuffle as pixel_shuffle,
)
from opscope.tensor.nn.functional.resize import (
    pixel_unshuffle as pixel_unshuffle,
)
from opscope.tensor.nn.functional.resize import (
    upsample as upsample,
)
from opscope.tensor.nn.functional.volumes import (
    adaptive_avg_pool3d as adaptive_avg_pool3d,
)
from opscope.tensor.nn.functional.volumes import (
    avg_pool3d as avg_pool3d,
)
from opscope.tensor.nn.functional.volumes import (
    conv3d as conv3d,
)
from opscope.tensor.nn.functional.volumes import (
    conv_transpose3d as conv_transpose3d,
)
from opscope.tensor.nn.functional.volumes import (
    max_pool3d as max_pool3d,
)


def __getattr__(name: str) -> object:
    from opscope.tensor.nearest import missing

    raise missing(__name__, name, globals())
