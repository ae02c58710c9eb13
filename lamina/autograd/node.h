// A recorded operator: it turns the gradients of its results into those of its inputs.
#pragma once

#include <span>
#include <vector>

#include "lamina/core/intrusive_ptr.h"
#include "lamina/core/tensor.h"
#include "lamina/shape/result_meta.h"

namespace lamina::autograd {

class Node;

// Where a gradient goes: result number `output_nr` of `node`. A null node wants none.
struct Edge {
  IntrusivePtr<Node> node;
  uint32_t output_nr = 0;
};

class Node : public RefCounted {
 public:
  Node();
  virtual const char* name() const = 0;
  // grads: one for each result of the forward operator, undefined ones allowed. results: one for
  // each edge; what should_compute() denies may stay undefined.
  virtual void apply(std::span<Tensor> grads, std::span<Tensor> results) = 0;
  // Drops what was saved; a second run then raises.
  virtual void release_saved() { released_ = true; }

  uint64_t sequence() const { return sequence_; }
  const std::vector<Edge>& edges() const { return edges_; }
  void add_edge(Edge e) { edges_.push_back(std::move(e)); }
  void reserve_edges(size_t n) { edges_.reserve(n); }
  bool should_compute(size_t edge) const { return edge < edges_.size() && edges_[edge].node; }
  // Announces one more result and tells its number.
  uint32_t add_output(const Tensor& result);
  uint32_t num_outputs() const { return num_outputs_; }
  // Zeros in the form of result `i`, for gradients that did not arrive.
  Tensor zeros_like_output(uint32_t i) const;

 protected:
  void check_not_released() const;
  void destroy() const noexcept override;  // iterative: a chain of a million nodes must not recurse

 private:
  uint64_t sequence_;
  std::vector<Edge> edges_;
  uint32_t num_outputs_ = 0;
  bool released_ = false;
  std::vector<ResultMeta> outputs_;
};

}  // namespace lamina::autograd
