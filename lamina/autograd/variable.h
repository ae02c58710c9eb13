// Autograd's side of a tensor: its gradient, the node that made it, and the recording helpers that
// generated code uses.
#pragma once

#include <atomic>
#include <initializer_list>
#include <mutex>

#include "lamina/autograd/mode.h"
#include "lamina/autograd/node.h"

namespace lamina::autograd {

struct Meta : AutogradMeta {
  Tensor grad;
  IntrusivePtr<Node> grad_fn;
  uint32_t output_nr = 0;
  bool is_view = false;         // made by a recorded view operator
  uint32_t view_version = 0;    // version of the storage when it was made
  std::mutex mutex;             // guards `accumulator`
  Node* accumulator = nullptr;  // weak: the node of this leaf, while some graph uses it
};

Meta* meta(const Tensor& t);  // null where there is none
Meta& require_meta(const Tensor& t);

// --- what users see
// -------------------------------------------------------------------------------------------------
// Raises Runtime for a tensor that is not floating or complex, or (to false) that is no leaf.
void set_requires_grad(const Tensor& t, bool v);
bool is_leaf(const Tensor& t);
const Tensor& grad(const Tensor& t);  // undefined where there is none
void set_grad(const Tensor& t, const Tensor& grad);
IntrusivePtr<Node> grad_fn(const Tensor& t);  // null for leaves
// Shares bytes and version count, has no history.
Tensor detach(const Tensor& t);
// Shares bytes, has a version count of its own (x.data).
Tensor data_of(const Tensor& t);

// --- what generated code calls
// --------------------------------------------------------------------------------------
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
void set_view_history(const Tensor& result, const IntrusivePtr<Node>& node);
// Raises Runtime for a leaf that requires grad, and for what in-place recording does not cover.
void check_inplace(const Tensor& self, const char* op);
// `self` was rewritten by `node`.
void rebase_history(const Tensor& self, const IntrusivePtr<Node>& node);
[[noreturn]] void raise_out_recorded(const char* op);

}  // namespace lamina::autograd
