// Forward mode: dual levels, tangents of tensors, and what generated rules are made of.
//
// A level is entered, some tensors get tangents, operators carry them along, the level is left.
// Levels nest; each has tangents of its own. The rule of an operator hides its level and calls the
// operator and its derivative as any program would, so lower levels and recording for backward see
// the tangents' computation too.
#pragma once

#include "lamina/autograd/tangents.h"
#include "lamina/autograd/variable.h"

namespace lamina::autograd::forward {

// Bit i: level i of this thread is alive and not hidden. Zero in almost every call.
extern __attribute__((tls_model("initial-exec"))) constinit thread_local uint64_t t_visible;
extern __attribute__((tls_model("initial-exec"))) constinit thread_local int t_num_levels;

// --- what users see ------------------------------------------------------------------------------
// Levels of this thread; the first is 0. leave_level raises Runtime for any level but the last, and
// frees all its tangents.
int enter_level();
void leave_level(int level);
inline int num_levels() { return t_num_levels; }
// Whether operators compute tangents on this thread.
bool enabled();
void set_enabled(bool v);

// A tensor on the bytes of `primal`, with a tangent. Raises Runtime where there is no such level,
// sizes differ, one of them is not floating or complex, or `primal` has a tangent of that level.
Tensor make_dual(const Tensor& primal, const Tensor& tangent, int level);
struct Dual {
  Tensor primal, tangent;  // the tangent is undefined where there is none
};
Dual unpack_dual(const Tensor& dual, int level);

class DualLevel {
 public:
  DualLevel() : index_(enter_level()) {}
  ~DualLevel() { leave_level(index_); }
  DualLevel(const DualLevel&) = delete;
  DualLevel& operator=(const DualLevel&) = delete;
  int index() const { return index_; }
  Tensor make_dual(const Tensor& primal, const Tensor& tangent) const {
    return forward::make_dual(primal, tangent, index_);
  }
  Dual unpack_dual(const Tensor& dual) const { return forward::unpack_dual(dual, index_); }

 private:
  int index_;
};

// --- what rules are made of ----------------------------------------------------------------------
// While one lives, this thread sees no tangents of `level` and of those entered after it.
class Hide {
 public:
  explicit Hide(int level) : before_(t_visible) { t_visible &= (uint64_t{1} << level) - 1; }
  ~Hide() { t_visible = before_; }
  Hide(const Hide&) = delete;
  Hide& operator=(const Hide&) = delete;

 private:
  uint64_t before_;
};

// The last visible level at which an operand has a tangent; -1 where there is none.
int highest_level(const Tensor& t);
int highest_level(TensorList list);
template <class A, class B, class... More>
int highest_level(const A& a, const B& b, const More&... more) {
  const int first = highest_level(a), rest = highest_level(b, more...);
  return first > rest ? first : rest;
}

// Whether some tensor of the list has a tangent of this level.
bool has_tangent(int level, TensorList list);
// Undefined where there is none. A view whose base has a tangent gets a window on that.
Tensor tangent(int level, const Tensor& t);
// The same, of a tensor that is about to be written: what is made of it survives the write.
Tensor tangent_before_write(int level, const Tensor& self);
std::vector<Tensor> tangents_before_write(int level, TensorList list);
// What jvp of a custom function gave: one tangent for each result, undefined for zero. Raises
// Runtime where their number or a size does not fit.
void set_custom_tangents(int level, TensorList inputs, TensorList outputs, TensorList tangents);
// One for each tensor of the list, zeros where there is none.
std::vector<Tensor> tangents(int level, TensorList list);
// The tangent of a fresh tensor.
void set_tangent(int level, const Tensor& t, Tensor value);
// `self` was written in place and has this tangent now (undefined: zero). Views of its base and the
// base itself see it.
void write_tangent(int level, const Tensor& self, const Tensor& value);
// The tangent a view operator is replayed on: its bytes lie as those of `t`.
Tensor tangent_for_view(int level, const Tensor& t);
// The tangent of a view: a view of the tangent.
void set_view_tangent(int level, const Tensor& view, Tensor value);
inline void set_view_tangent(int level, const std::vector<Tensor>& views,
                             std::vector<Tensor> values) {
  for (size_t i = 0; i < values.size(); ++i)
    set_view_tangent(level, views[i], std::move(values[i]));
}
// `self` got another window on its bytes, and so did its tangent.
void replace_window(int level, const Tensor& self, Tensor value);
// `self` was written by an operator without derivative: its tangents are zero now.
void drop_tangents(const Tensor& self);
// Both tensors have the same tangents from now on: `alias` is what a node keeps of `t`.
void share_tangents_now(const Tensor& t, const Tensor& alias);
inline void share_tangents(const Tensor& t, const Tensor& alias) {
  if (t_num_levels) [[unlikely]]
    share_tangents_now(t, alias);
}
// detach(), but the tangents stay: for what the library itself keeps.
inline Tensor detached(const Tensor& t) {
  Tensor alias = detach(t);
  share_tangents(t, alias);
  return alias;
}
// `copy` gets copies of all tangents of `t`, hidden ones too: it is what a node keeps of a tensor
// that is about to be written.
void copy_tangents_now(const Tensor& t, const Tensor& copy);
inline void copy_tangents(const Tensor& t, const Tensor& copy) {
  if (t_num_levels) [[unlikely]]
    copy_tangents_now(t, copy);
}
[[noreturn]] void raise_out(const char* op);
[[noreturn]] void raise_missing(const char* op, const char* reason);

// The tangent of one result, summed over the operands that have one.
class Sum {
 public:
  // `result` gives sizes and type.
  explicit Sum(const Tensor& result);
  // Whether the result can have a tangent: it is floating or complex.
  bool wanted() const { return wanted_; }
  // An operand's tangent in the place of a gradient of the result: in its type, stretched to its
  // sizes, conjugated (gradients are, by convention).
  Tensor cotangent(const Tensor& tangent) const;
  void add(const Tensor& part);
  void add_conj(const Tensor& part);
  const Tensor& value() const { return value_; }
  Tensor take() { return std::move(value_); }

 private:
  Sizes sizes_;
  ScalarType dtype_;
  bool wanted_;
  Tensor value_;
};

}  // namespace lamina::autograd::forward
