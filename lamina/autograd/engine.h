// Runs recorded programs backward.
#pragma once

#include <vector>

#include "lamina/autograd/variable.h"

namespace lamina::autograd {

// Adds d(sum of roots . root_grads)/d(leaf) to the .grad of every leaf, or of `inputs` where given.
// An undefined root gradient stands for 1 and needs a root of one element. Raises Runtime for roots
// that do not require grad.
void backward(TensorList roots, TensorList root_grads, bool retain_graph, bool create_graph,
              TensorList inputs = {});

// The gradients of `inputs`; undefined where there is none, which raises unless allow_unused.
std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList output_grads,
                         bool retain_graph, bool create_graph, bool allow_unused);

}  // namespace lamina::autograd
