// The node at the end of every path: it adds what arrives to a leaf's .grad.
#pragma once

#include "lamina/autograd/variable.h"

namespace lamina::autograd {

class AccumulateGrad : public Node {
 public:
  explicit AccumulateGrad(Tensor variable) : variable_(std::move(variable)) {}
  ~AccumulateGrad() override;
  const char* name() const override { return "AccumulateGrad"; }
  void apply(std::span<Tensor> grads, std::span<Tensor> results) override;
  void release_saved() override {}
  const Tensor& variable() const { return variable_; }

 private:
  Tensor variable_;
};

// The one accumulator of a leaf, made when first asked for.
IntrusivePtr<Node> accumulator_of(const Tensor& leaf);

}  // namespace lamina::autograd
