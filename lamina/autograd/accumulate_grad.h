// The node at the end of every path: it adds what arrives to a leaf's .grad.
#pragma once

#include <mutex>

#include "lamina/autograd/variable.h"

namespace lamina::autograd {

class AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(Tensor variable) : variable_(std::move(variable)) {
    set_sequence(UINT64_MAX);  // runs before any other node that is ready
  }
  ~AccumulateGrad() override;
  const char* name() const override { return "AccumulateGrad"; }
  void apply(std::span<Tensor> grads, std::span<Tensor> results) override;
  void release_saved() override {}
  std::vector<NodeHooks::OfResult> leaf_hooks() const override;
  const Tensor& variable() const { return variable_; }

 private:
  Tensor variable_;
  // Several passes at once may end here; adding to a tensor whose class is written in Python may
  // even run another one.
  std::recursive_mutex mutex_;
};

// The one accumulator of a leaf, made when first asked for.
IntrusivePtr<Node> accumulator_of(const Tensor& leaf);

}  // namespace lamina::autograd
