// Batching rules: what a call of an operator with batched tensors does with their values.
//
// A rule is chosen by the operator's paragraph (its `kind`, or `vmap:`), works on the boxed
// arguments and is one function for all operators of its kind. A rule that does not recognise what
// it sees gives way to the loop over samples, which defines what is right, errors included.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/dispatch/operator.h"
#include "lamina/generated/vmap_rules.h"
#include "lamina/transforms/batched.h"

namespace lamina::transforms {

using dispatch::Operator;
using dispatch::Stack;
using dispatch::Value;
using generated::VmapRule;

// Names and types of an operator's parameters, read from its schema once.
struct Parameters {
  std::vector<std::string> names;
  std::vector<std::string> types;         // without marks of aliasing
  int find(std::string_view name) const;  // -1 where there is none
};
const Parameters& parameters_of(const Operator& op);

// A call that a rule works on.
class Frame {
 public:
  Frame(const Operator& op, Stack& stack, int64_t level, int64_t size)
      : op(op), stack(stack), level(level), size(size), parameters(parameters_of(op)) {}

  const Operator& op;
  Stack& stack;
  const int64_t level;
  const int64_t size;
  const Parameters& parameters;

  bool is_batched(const Value& v) const;
  bool is_batched(const Tensor& t) const { return level_of(t) == level; }
  bool writes() const { return op.info().written != 0; }
  bool is_written(size_t i) const { return i < 64 && op.info().written >> i & 1; }
  // Null where the argument is no tensor.
  const Tensor* tensor(size_t i) const {
    return i < stack.size() ? std::get_if<Tensor>(&stack[i]) : nullptr;
  }
  Value* argument(std::string_view name) const {
    const int i = parameters.find(name);
    return i < 0 ? nullptr : &stack[static_cast<size_t>(i)];
  }
  // The value with samples first and `rank` dimensions after them: ones are put between. `t` may be
  // a tensor that is not batched; it is returned as it is.
  Tensor aligned(const Tensor& t, int64_t rank) const;
  // The value with samples first; a tensor that is not batched is repeated.
  Tensor with_samples(const Tensor& t) const { return taken_out(t, level, size); }
  // Calls the operator on the values that now lie on the stack, and wraps its tensors: samples are
  // dimension `dim` of them. What was written is handed back as the batched tensor it was.
  void call(int64_t dim = 0);
  void call(const Operator& other, int64_t dim = 0);
  // Puts one batched result in place of the arguments.
  void give(const Tensor& value, int64_t dim = 0);
};

// Rules answer whether they have done it; false leaves the stack as it was.
bool pointwise(Frame& f);
bool reduction(Frame& f);
bool along_dimension(Frame& f);
bool view(Frame& f);
bool direct(Frame& f);
bool trailing(Frame& f);
bool images(Frame& f);
bool sized(Frame& f);
bool matrix(Frame& f);
bool linear(Frame& f);
bool convolve(Frame& f);
bool embed(Frame& f);
bool normalize(Frame& f);
bool gather_rows(Frame& f);
bool put_rows(Frame& f);
bool fill(Frame& f);
bool slice_gradient(Frame& f);
bool likelihood(Frame& f);
bool normalize_groups(Frame& f);
bool normalize_batch(Frame& f);
bool convolve_gradient(Frame& f);

// The definition: the operator on each sample, results stacked.
void loop(Frame& f);
// What the key FuncTorchBatched does with every operator.
void batched_kernel(const Operator& op, KeySet keys, Stack& stack);

// Random operators inside vmap (random.cpp).
void serve_random_operators();
bool draw(Frame& f);

// Calls an operator of the op list with arguments by name: those of `f` where names agree.
const Operator& operator_named(std::string_view full_name);

}  // namespace lamina::transforms
