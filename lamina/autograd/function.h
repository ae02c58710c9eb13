// Operators with a backward of the user's own.
//
//   struct Double : autograd::Function<Double> {
//     static Tensor forward(autograd::FunctionContext& ctx, const Tensor& x) {
//       ctx.save_for_backward({x});
//       return ops::mul(x, Scalar(2));
//     }
//     static std::vector<Tensor> backward(autograd::FunctionContext& ctx,
//                                         const std::vector<Tensor>& grads) {
//       return {ops::mul(grads[0], Scalar(2))};
//     }
//   };
//   Tensor y = Double::apply(x);
//
// For forward mode F has a static jvp(FunctionContext&, tangents) too, which gives one tangent for
// each result; without it a tensor with a tangent raises NotImplemented.
#pragma once

#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "lamina/autograd/forward.h"
#include "lamina/autograd/saved_tensor.h"
#include "lamina/dispatch/value.h"

namespace lamina::autograd {

// Gives the results of a forward call their history. outputs: what forward gave, undefined items
// are results that are no tensors. dirty: inputs that it wrote in place. without_gradient: results
// the user marked. node: null where nothing is recorded. Returns the tensors to hand out, which
// stand for the outputs (an input given back unchanged comes as a view).
std::vector<Tensor> finish_custom_forward(const std::vector<Tensor>& inputs,
                                          const std::vector<Tensor>& outputs,
                                          const std::vector<Tensor>& dirty,
                                          const std::vector<Tensor>& without_gradient,
                                          const IntrusivePtr<Node>& node, const char* name);
// A tensor that the call saves; `outputs`: what finish_custom_forward gave.
SavedTensor save_for_node(const Tensor& t, const std::vector<Tensor>& outputs);

class FunctionContext {
 public:
  // Tensors that backward needs: inputs and results of the call. Others are kept as well, but a
  // gradient of the gradient does not reach what they were computed from.
  void save_for_backward(std::vector<Tensor> tensors) { to_save_ = std::move(tensors); }
  // In backward and in jvp: what was saved. Raises Runtime where it was written since, or has been
  // dropped.
  std::vector<Tensor> saved() const;
  void mark_dirty(std::vector<Tensor> inputs) { dirty_ = std::move(inputs); }
  void mark_non_differentiable(std::vector<Tensor> outputs) {
    without_gradient_ = std::move(outputs);
  }
  // Whether gradients that did not arrive come as zeros (true unless set) or undefined.
  void set_materialize_grads(bool v) { materialize_ = v; }
  // Whether input tensor number `i` wants a gradient.
  bool needs_input_grad(size_t i) const;
  // What else backward needs, by name.
  std::map<std::string, dispatch::Value> saved_data;

 private:
  template <class>
  friend class CustomNode;
  template <class>
  friend class Function;
  std::vector<Tensor> to_save_, dirty_, without_gradient_;
  std::vector<SavedTensor> saved_;
  bool materialize_ = true;
  bool in_jvp_ = false;  // to_save_ is still there
  Node* node_ = nullptr;
};

// Raises Runtime: backward gives one gradient for each tensor that forward took.
[[noreturn]] void raise_gradient_count(const char* name, size_t got, size_t expected);

template <class F>
class CustomNode final : public Node {
 public:
  FunctionContext context;
  const char* name() const override { return "CppFunction"; }
  bool is_user_defined() const override { return true; }
  void apply(std::span<Tensor> grads, std::span<Tensor> results) override {
    std::vector<Tensor> given(grads.begin(), grads.end());
    if (context.materialize_)
      for (uint32_t i = 0; i < given.size(); ++i)
        if (!given[i].defined()) given[i] = zeros_like_output(i);
    std::vector<Tensor> made = F::backward(context, given);
    if (made.size() != results.size()) raise_gradient_count(name(), made.size(), results.size());
    for (size_t i = 0; i < results.size(); ++i) results[i] = std::move(made[i]);
  }
  void release_saved() override {
    mark_released();
    for (SavedTensor& s : context.saved_) s.reset(*this);
  }
  void read_saved(SavedReader& reader) const override {
    for (const SavedTensor& s : context.saved_)
      reader.tensor("tensor", const_cast<SavedTensor&>(s));
  }
};

// Base of user-defined operators: F has static forward(FunctionContext&, args...), which gives a
// Tensor or a vector of them, and static backward(FunctionContext&, grads), which gives one
// gradient (undefined for none) for each Tensor among the arguments.
template <class F>
class Function {
 public:
  template <class... Args>
  static auto apply(const Args&... args) {
    return run(IntrusivePtr<CustomNode<F>>::make(), args...);
  }

 private:
  template <class... Args>
  static auto run(const IntrusivePtr<CustomNode<F>>& node, const Args&... args) {
    std::vector<Tensor> inputs;
    (collect(inputs, args), ...);
    if (forward::t_visible) [[unlikely]]
      if (const int level = forward::highest_level(inputs); level >= 0)
        return run_with_tangents<decltype(F::forward(node->context, args...))>(level, node, inputs,
                                                                               args...);
    bool record = false;
    for (const Tensor& t : inputs) record |= t.requires_grad();
    record &= grad_enabled();
    node->context.node_ = node.get();
    if (record)
      for (const Tensor& t : inputs) node->add_edge(gradient_edge(t));
    auto result = [&] {
      const NoGrad guard;
      return F::forward(node->context, args...);
    }();
    std::vector<Tensor> outputs;
    collect(outputs, result);
    FunctionContext& ctx = node->context;
    outputs = finish_custom_forward(inputs, outputs, ctx.dirty_, ctx.without_gradient_,
                                    record ? IntrusivePtr<Node>(node) : nullptr, node->name());
    if (record)
      for (const Tensor& t : ctx.to_save_) ctx.saved_.push_back(save_for_node(t, outputs));
    if (!ctx.in_jvp_) ctx.to_save_.clear();
    ctx.dirty_.clear();
    ctx.without_gradient_.clear();
    if constexpr (std::is_same_v<std::decay_t<decltype(result)>, Tensor>)
      return outputs[0];
    else
      return outputs;
  }

  // The call with the tangents of `level` hidden, then jvp.
  template <class R, class... Args>
  static R run_with_tangents(int level, const IntrusivePtr<CustomNode<F>>& node,
                             const std::vector<Tensor>& inputs, const Args&... args) {
    FunctionContext& ctx = node->context;
    const forward::Hide hide(level);
    std::vector<Tensor> tangents = forward::tangents_before_write(level, inputs);
    const bool outermost = !std::exchange(ctx.in_jvp_, true);
    auto result = run(node, args...);
    std::vector<Tensor> outputs;
    collect(outputs, result);
    if constexpr (requires { F::jvp(ctx, tangents); })
      forward::set_custom_tangents(level, inputs, outputs, F::jvp(ctx, tangents));
    else
      forward::raise_missing("CppFunction", "it has no jvp");
    if (outermost) {
      ctx.in_jvp_ = false;
      ctx.to_save_.clear();
    }
    return result;
  }

  static void collect(std::vector<Tensor>& out, const Tensor& t) { out.push_back(t); }
  static void collect(std::vector<Tensor>& out, const std::vector<Tensor>& list) {
    out.insert(out.end(), list.begin(), list.end());
  }
  template <class T>
  static void collect(std::vector<Tensor>&, const T&) {}
};

}  // namespace lamina::autograd
