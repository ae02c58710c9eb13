#include "lamina/autograd/accumulate_grad.h"

#include <atomic>
#include <thread>

#include "lamina/autograd/forward.h"
#include "lamina/core/error.h"
#include "lamina/kernels/generated_support.h"
#include "lamina/ops/add.h"
#include "lamina/ops/clone.h"
#include "lamina/ops/detach.h"
#include "lamina/ops/resolve_conj.h"
#include "lamina/ops/resolve_neg.h"

namespace lamina::autograd {

namespace {
// Taken twice by every recorded operator on a leaf, and hardly ever waited for: letting go of it is
// a plain store.
class SpinLock {
 public:
  void lock() {
    while (taken_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  }
  void unlock() { taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag taken_;
};

// Guards every leaf's weak slot and every gradient's pointer; held for a few instructions, and
// nothing is locked or destroyed inside.
constinit SpinLock slots;
}  // namespace

Tensor GradSlot::get() const {
  const std::lock_guard lock(slots);
  return value_;
}
Tensor GradSlot::exchange(Tensor next) {
  const std::lock_guard lock(slots);
  std::swap(value_, next);
  return next;
}

IntrusivePtr<Node> accumulator_of(const Tensor& leaf) {
  Meta& m = require_meta(leaf);
  const std::lock_guard lock(slots);
  if (m.accumulator && m.accumulator->try_retain()) return IntrusivePtr<Node>::adopt(m.accumulator);
  Node* const recorded = Node::newest();
  auto node = IntrusivePtr<AccumulateGrad>::make(leaf);
  if (recorded) recorded->set_newest();
  m.accumulator = node.get();
  return node;
}

AccumulateGrad::~AccumulateGrad() {
  Meta& m = require_meta(variable_);
  const std::lock_guard lock(slots);
  if (m.accumulator == this) m.accumulator = nullptr;
}

std::vector<NodeHooks::OfResult> AccumulateGrad::leaf_hooks() const {
  const Meta* m = meta(variable_);
  if (!m) return {};
  const std::lock_guard lock(hooks_mutex);
  return m->leaf_hooks ? m->leaf_hooks->tensor : std::vector<NodeHooks::OfResult>();
}

void AccumulateGrad::apply(std::span<Tensor> grads, std::span<Tensor>) {
  Tensor incoming = std::move(grads[0]);
  if (!incoming.defined()) return;
  std::shared_ptr<TensorHook> after;
  {
    const std::lock_guard lock(mutex_);
    Meta& m = require_meta(variable_);
    LAMINA_CHECK(incoming.sizes() == variable_.sizes(),
                 "AccumulateGrad: the gradient has the wrong size; got ", incoming, "; expected ",
                 variable_);
    // Below the dispatcher nobody reads the marks of a lazily conjugated or negated gradient.
    if (!(incoming.keys() & KeySet::of(DispatchKey::Conjugate, DispatchKey::Negative)).empty())
      incoming = ops::resolve_neg(ops::resolve_conj(incoming));
    // A program may set .grad meanwhile.
    if (const Tensor current = m.grad.get(); current.defined()) {
      if (grad_enabled())
        m.grad.exchange(ops::add(current, incoming));
      else
        ops::add_(current, incoming);
    } else if (grad_enabled() || forward::num_levels()) {
      m.grad.exchange(ops::clone(incoming));
    } else if (incoming.keys().has(DispatchKey::Python)) {
      m.grad.exchange(ops::detach(incoming));  // its class decides what the bytes are
    } else if (incoming.impl()->use_count() == 1 && incoming.is_non_overlapping_and_dense() &&
               incoming.strides() == variable_.strides() && incoming.storage()->use_count() == 1) {
      m.grad.exchange(detach(incoming));  // nobody else holds these bytes
    } else {
      // The leaf's layout, so that optimizers walk both in step.
      Tensor fresh = empty_preserving(variable_, incoming.dtype());
      copy_values(fresh, incoming);
      m.grad.exchange(fresh);
    }
    after = m.post_accumulate;
  }
  if (after) {
    Tensor leaf = variable_;
    after->run(leaf);
  }
}

}  // namespace lamina::autograd
