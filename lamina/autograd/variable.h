// Autograd's side of a tensor: its gradient, the node that made it, and the recording helpers that
// generated code uses.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>

#include "lamina/autograd/anomaly.h"
#include "lamina/autograd/mode.h"
#include "lamina/autograd/node.h"
#include "lamina/autograd/tangents.h"

namespace lamina::autograd {

class RetainGrad;

// Makes a view again from its base, where sizes and strides alone do not say how.
using ViewReplay = std::function<Tensor(const Tensor& base)>;

// A gradient: a backward pass of one thread may replace it while a program reads it on another.
class GradSlot {
 public:
  Tensor get() const;
  // Returns what was there, so that it dies outside the lock.
  Tensor exchange(Tensor next);
  // Without the lock: for Python's collector, which makes sure that no other thread is at work.
  const Tensor& peek() const { return value_; }

 private:
  Tensor value_;
};

struct Meta : AutogradMeta {
  Meta() = default;
  ~Meta() override;
  static void* operator new(size_t bytes) { return allocate_block(bytes); }
  static void operator delete(void* memory, size_t bytes) noexcept { free_block(memory, bytes); }

  // The tensor is result number `number` of `node`, and nothing else is changed.
  void set_edge(IntrusivePtr<Node> node, uint32_t number) {
    grad_fn = std::move(node);
    output_nr = number;
    has_grad_fn = grad_fn != nullptr;
  }

  GradSlot grad;
  IntrusivePtr<Node> grad_fn;
  uint32_t output_nr = 0;
  IntrusivePtr<forward::Tangents> tangents;  // forward mode; null for almost every tensor
  Node* accumulator = nullptr;  // weak: the node of this leaf, while some graph uses it
  std::shared_ptr<const ViewReplay> replay;
  std::unique_ptr<NodeHooks> leaf_hooks;     // on the gradient of a leaf
  std::shared_ptr<RetainGrad> retain_grad;   // fills .grad of a tensor that is no leaf
  std::shared_ptr<Attachment> python_hooks;  // the dict of hooks that Python sees
  // After a leaf's gradient has been added to: runs with the leaf.
  std::shared_ptr<TensorHook> post_accumulate;
};

Meta* meta(const Tensor& t);  // null where there is none
Meta& require_meta(const Tensor& t);

// --- what users see ------------------------------------------------------------------------------

// Raises Runtime for a tensor that is not floating or complex, or (to false) that is no leaf.
void set_requires_grad(const Tensor& t, bool v);
bool is_leaf(const Tensor& t);
Tensor grad(const Tensor& t);  // undefined where there is none
void set_grad(const Tensor& t, const Tensor& grad);
// Null for leaves. Of a view whose base was written since: the node that leads to the base's new
// history; raises Runtime where the view must not follow its base (made under no_grad, or one of
// several views of one call).
IntrusivePtr<Node> grad_fn(const Tensor& t);
// Shares bytes and version count, has no history.
Tensor detach(const Tensor& t);
// Shares bytes, has a version count of its own (x.data).
Tensor data_of(const Tensor& t);
// Forgets the history. Raises Runtime for views.
void detach_inplace(const Tensor& t);
// Keeps the gradient of a tensor that is no leaf in its .grad, too.
void retain_grad(const Tensor& t);
bool retains_grad(const Tensor& t);
// `hook` sees, and may replace, the gradient of `t`.
void register_hook(const Tensor& t, std::shared_ptr<TensorHook> hook);
void clear_leaf_hooks(const Tensor& leaf);
void register_post_accumulate_hook(const Tensor& leaf, std::shared_ptr<TensorHook> hook);

// --- what generated code calls -------------------------------------------------------------------

inline bool wants_grad(const Tensor& t) { return t.requires_grad(); }
inline bool wants_grad(TensorList list) {
  for (const Tensor& t : list)
    if (t.requires_grad()) return true;
  return false;
}
template <class... Ts>
bool recording(const Ts&... tensors) {
  return t_mode.grad && (false || ... || wants_grad(tensors));
}

Edge gradient_edge(const Tensor& t);
inline void add_edges(Node& node, const Tensor& t) { node.add_edge(gradient_edge(t)); }
inline void add_edges(Node& node, TensorList list) {
  for (const Tensor& t : list) node.add_edge(gradient_edge(t));
}
// The result was made by `node`; a result that is not floating or complex stays without history.
void set_history(const Tensor& result, const IntrusivePtr<Node>& node);
void set_history(const std::vector<Tensor>& results, const IntrusivePtr<Node>& node);
// `t` is result number `output_nr` of `node` from now on, and its hooks stay with the old node.
void set_gradient_edge(const Tensor& t, IntrusivePtr<Node> node, uint32_t output_nr);

// A copy of the values of `t` with the history of `t`: what a write in place keeps of the old ones.
Tensor copy_with_history(const Tensor& t);

// In-place writes, recorded or not: raises Runtime for an inference tensor outside of
// inference_mode.
inline void check_writable(const Tensor& self, const char* op);
// Raises Runtime where recording a write to `self` is not possible: a leaf that requires grad, a
// view of one, one of several views of one call, a view made under no_grad.
void check_inplace(const Tensor& self, const char* op);
// `self` was rewritten by `node`. Through a view, its base's history goes on with CopySlices.
void rebase_history(const Tensor& self, const IntrusivePtr<Node>& node);
// `self` was overwritten by an operator that has no gradient: what was there gets none.
void cut_history(const Tensor& self, const char* node_name);
[[noreturn]] void raise_out_recorded(const char* op);
[[noreturn]] void raise_inference_write(const char* op);

inline void check_writable(const Tensor& self, const char* op) {
  if (self.impl()->is_inference() && !t_mode.inference) [[unlikely]]
    raise_inference_write(op);
  if (anomaly_enabled()) [[unlikely]]
    note_write(self);
}

// Runs as if the caller were outside of every autograd layer, inference_mode included.
class RecordAgain {
 public:
  RecordAgain();
  ~RecordAgain();
  RecordAgain(const RecordAgain&) = delete;
  RecordAgain& operator=(const RecordAgain&) = delete;

 private:
  KeySet excluded_;
  Mode mode_;
};

}  // namespace lamina::autograd
