// Levels of reverse mode: the inputs of grad, vjp and what is built on them.
//
// Reverse mode needs no levels to be right: a gradient is asked for at the node of one input, and
// nothing else is taken for it. Levels tell what may be forgotten: a result that depends on inputs
// of levels that are left, and on nothing that others record, has no history outside.
#pragma once

#include "lamina/autograd/node.h"
#include "lamina/transforms/batched.h"

namespace lamina::transforms {

int64_t enter_grad();
void leave_grad(int64_t level);

// `t` as an input of `level`: the same bytes, a place of its own in the graph, with the history of
// `t` behind it where `recorded`. It is batched at every level of vmap that this thread is in,
// since a gradient belongs to one sample. Raises Runtime where `t` is not floating or complex.
Tensor grad_input(const Tensor& t, int64_t level, bool recorded);
// Whether the history of `t` leads to something other than inputs of levels that are left or are
// `level`: a leaf, or an input of a level that is still open.
bool depends_outside(const Tensor& t, int64_t level);
// `t` without its history; tangents stay.
Tensor without_history(const Tensor& t);
bool requires_grad(const Tensor& t);

// autograd::grad for tensors that may be batched: each sample is differentiated for itself.
std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList output_grads,
                         bool retain_graph, bool create_graph, bool allow_unused);

// node.apply for gradients of which some are batched: at once, or where the node cannot do that (it
// asks for values, or writes) sample by sample.
void apply_node(autograd::Node& node, std::span<Tensor> grads, std::span<Tensor> results);

// forward::make_dual and unpack_dual for tensors that may be batched.
Tensor make_dual(const Tensor& primal, const Tensor& tangent, int level);
std::pair<Tensor, Tensor> unpack_dual(const Tensor& dual, int level);

}  // namespace lamina::transforms
