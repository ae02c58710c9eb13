#include "lamina/autograd/node.h"

#include <thread>

#include "lamina/autograd/anomaly.h"
#include "lamina/core/error.h"
#include "lamina/kernels/result.h"

namespace lamina::autograd {

constinit thread_local bool Node::t_selective = false;
std::mutex hooks_mutex;

namespace {
// Nodes of one thread run in reverse order of their making; other threads' nodes are only ordered
// by dependencies.
constinit thread_local uint64_t t_sequence = 0;
// Mostly one node at a time: room for some on the stack.
using Dying = SmallVector<const Node*, 16>;
constinit thread_local Dying* t_dying = nullptr;
constinit thread_local Node* t_newest = nullptr;
}  // namespace

void EdgeList::reserve(size_t n) {
  if (n <= capacity_) return;
  auto more = std::make_unique<Edge[]>(n);
  for (uint32_t i = 0; i < size_; ++i) more[i] = std::move(data()[i]);
  more_ = std::move(more);
  capacity_ = static_cast<uint32_t>(n);
}

void Node::Lock::let_others_run() { std::this_thread::yield(); }

Node::Node() : sequence_(t_sequence++) {
  t_newest = this;
  if (anomaly_enabled()) [[unlikely]]
    note_forward_call(*this);
}

Node::~Node() {
  delete hooks_.load(std::memory_order_relaxed);
  if (t_newest == this) t_newest = nullptr;
}

NodeHooks& Node::hooks() {
  if (NodeHooks* there = hooks_if_any()) return *there;
  const std::lock_guard lock(hooks_mutex);
  if (NodeHooks* there = hooks_if_any()) return *there;
  auto* made = new NodeHooks;
  hooks_.store(made, std::memory_order_release);
  return *made;
}

Node* Node::newest() { return t_newest; }
void Node::set_newest() { t_newest = this; }

uint32_t Node::add_output(const Tensor& result) {
  ResultMeta& meta = num_outputs_ == 0 ? output_ : more_outputs_.emplace_back();
  const IntList sizes = result.sizes();
  meta.sizes.assign(sizes.data(), sizes.size());
  meta.dtype = result.dtype();
  meta.device = result.device();
  return num_outputs_++;
}

uint32_t Node::add_output_without_gradient() {
  if (num_outputs_ != 0) more_outputs_.emplace_back();
  return num_outputs_++;
}

Tensor Node::zeros_like_output(uint32_t i) const {
  const ResultMeta& meta = output(i);
  Tensor t = empty_contiguous(meta.sizes, meta.dtype, meta.device);
  zero_bytes(t);
  return t;
}

void Node::check_not_released() const {
  LAMINA_CHECK(!released(), name(),
               ": Trying to backward through the graph a second time (or directly access saved "
               "tensors after they have already been freed). Saved intermediate values of the "
               "graph are freed when you call .backward() or autograd.grad(). Specify "
               "retain_graph=True if you need to backward through the graph a second time or if "
               "you need to access saved tensors after calling backward.");
}

void Node::destroy() const noexcept {
  if (t_dying) {
    t_dying->push_back(this);
    return;
  }
  Dying dying{this};
  t_dying = &dying;
  while (!dying.empty()) {
    const Node* n = dying.back();
    dying.pop_back();
    delete n;
  }
  t_dying = nullptr;
}

}  // namespace lamina::autograd
