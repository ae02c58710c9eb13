// Runs recorded programs backward.
#pragma once

#include <functional>
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

// The same for edges: `roots` are results of nodes, `inputs` the places whose gradient is wanted.
std::vector<Tensor> grad_of_edges(std::vector<Edge> roots, std::vector<Tensor> root_grads,
                                  const std::vector<Edge>& inputs, bool retain_graph,
                                  bool create_graph);

// --- while a pass runs on this thread ---
// The node that runs; null outside.
Node* running_node();
// A number that tells this thread's innermost pass from others; -1 outside.
int64_t running_pass();
// Whether that pass will run, or has run, `node`. Raises Runtime outside of a pass.
bool pass_executes(const Node& node);
// Whether that pass fills the .grad of every leaf, and not some gradients only.
bool pass_reaches_all();
// Runs when the innermost pass has come to its end. Raises Runtime outside of a pass.
void at_end_of_pass(std::function<void()> callback);

}  // namespace lamina::autograd
