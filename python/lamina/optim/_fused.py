"""``_fused_*_``: steps of whole lists as operators, under the names and with the arguments of the peer.

Step counts are those after the step (they have been counted on already). A step whose gradients hold
infinities, as `found_inf` says, changes nothing.
"""

from lamina import no_grad

from .adagrad import adagrad
from .adam import adam
from .optimizer import _get_value
from .sgd import sgd


def _counted(state_steps):
    return [step - 1 for step in state_steps]


@no_grad()
def _fused_adam_(
    self,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    state_steps,
    *,
    lr,
    beta1,
    beta2,
    weight_decay,
    eps,
    amsgrad,
    maximize,
    grad_scale=None,
    found_inf=None,
    _decoupled=False,
):
    """One step of Adam."""
    adam(
        list(self),
        list(grads),
        list(exp_avgs),
        list(exp_avg_sqs),
        list(max_exp_avg_sqs),
        _counted(state_steps),
        lr=lr,
        beta1=beta1,
        beta2=beta2,
        weight_decay=weight_decay,
        eps=eps,
        amsgrad=amsgrad,
        maximize=maximize,
        grad_scale=grad_scale,
        found_inf=found_inf,
        decoupled_weight_decay=_decoupled,
    )


def _fused_adamw_(*args, **kwargs):
    """One step of AdamW."""
    _fused_adam_(*args, **kwargs, _decoupled=True)


@no_grad()
def _fused_sgd_(
    self,
    grads,
    momentum_buffer_list,
    *,
    weight_decay,
    momentum,
    lr,
    dampening,
    nesterov,
    maximize,
    is_first_step,
    grad_scale=None,
    found_inf=None,
):
    """One step of SGD; at the first one the momentum buffers are filled."""
    buffers = [None] * len(self) if is_first_step else list(momentum_buffer_list)
    sgd(
        list(self),
        list(grads),
        buffers,
        weight_decay=weight_decay,
        momentum=momentum,
        lr=_get_value(lr),
        dampening=dampening,
        nesterov=nesterov,
        maximize=maximize,
        grad_scale=grad_scale,
        found_inf=found_inf,
    )
    if is_first_step:
        for buffer, made in zip(momentum_buffer_list, buffers):
            if made is not None:
                buffer.copy_(made)


@no_grad()
def _fused_adagrad_(
    self,
    grads,
    state_sums,
    state_steps,
    *,
    lr,
    lr_decay,
    weight_decay,
    eps,
    maximize,
    grad_scale=None,
    found_inf=None,
):
    """One step of Adagrad."""
    adagrad(
        list(self),
        list(grads),
        list(state_sums),
        _counted(state_steps),
        lr=_get_value(lr),
        lr_decay=lr_decay,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
        grad_scale=grad_scale,
        found_inf=found_inf,
    )
