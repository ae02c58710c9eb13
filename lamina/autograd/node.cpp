#include "lamina/autograd/node.h"

#include "lamina/autograd/mode.h"
#include "lamina/core/error.h"
#include "lamina/kernels/result.h"

namespace lamina::autograd {

constinit thread_local Mode t_mode;

namespace {
// Nodes of one thread run in reverse order of their making; other threads' nodes are only ordered
// by dependencies.
constinit thread_local uint64_t t_sequence = 0;
thread_local std::vector<const Node*>* t_dying = nullptr;
}  // namespace

Node::Node() : sequence_(t_sequence++) {}

uint32_t Node::add_output(const Tensor& result) {
  outputs_.push_back(
      {Sizes(std::span<const int64_t>(result.sizes())), result.dtype(), result.device()});
  return num_outputs_++;
}

Tensor Node::zeros_like_output(uint32_t i) const {
  const ResultMeta& meta = outputs_.at(i);
  Tensor t = empty_contiguous(meta.sizes, meta.dtype, meta.device);
  zero_bytes(t);
  return t;
}

void Node::check_not_released() const {
  LAMINA_CHECK(!released_, name(),
               ": Trying to backward through the graph a second time (or directly access saved "
               "tensors after they have "
               "already been freed). Specify retain_graph=True if you need to backward through the "
               "graph a second time "
               "or if you need to access saved tensors after calling backward.");
}

void Node::destroy() const noexcept {
  if (t_dying) {
    t_dying->push_back(this);
    return;
  }
  std::vector<const Node*> dying{this};
  t_dying = &dying;
  while (!dying.empty()) {
    const Node* n = dying.back();
    dying.pop_back();
    delete n;
  }
  t_dying = nullptr;
}

}  // namespace lamina::autograd
