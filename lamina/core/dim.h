// One size in a shape rule: today an int64_t whose arithmetic raises on overflow instead of
// wrapping; shape rules are written against this name so that a size may become symbolic.
#pragma once

#include <cstdint>

#include "lamina/core/small_vector.h"

namespace lamina {

[[noreturn]] void raise_dim_overflow(const char* what, int64_t a, int64_t b);

class Dim {
 public:
  constexpr Dim() = default;
  constexpr Dim(int64_t v) : value_(v) {}
  constexpr int64_t value() const { return value_; }
  constexpr operator int64_t() const { return value_; }

  friend Dim operator+(Dim a, Dim b) {
    int64_t r;
    if (__builtin_add_overflow(a.value_, b.value_, &r)) raise_dim_overflow("sum", a, b);
    return r;
  }
  friend Dim operator-(Dim a, Dim b) {
    int64_t r;
    if (__builtin_sub_overflow(a.value_, b.value_, &r)) raise_dim_overflow("difference", a, b);
    return r;
  }
  friend Dim operator*(Dim a, Dim b) {
    int64_t r;
    if (__builtin_mul_overflow(a.value_, b.value_, &r)) raise_dim_overflow("product", a, b);
    return r;
  }
  friend constexpr Dim operator/(Dim a, Dim b) { return a.value_ / b.value_; }
  Dim& operator*=(Dim o) { return *this = *this * o; }
  Dim& operator+=(Dim o) { return *this = *this + o; }

 private:
  int64_t value_ = 0;
};

// Product of sizes; raises where it, or the bytes it stands for, overflow.
Dim numel_of(IntList sizes);
// Negative dimensions count from the end. `ndim` 0 accepts -1 and 0, as in PyTorch. Raises Index.
int64_t wrap_odd_dim(int64_t dim, int64_t ndim, const char* op);
inline int64_t wrap_dim(int64_t dim, int64_t ndim, const char* op) {
  const int64_t wrapped = dim < 0 ? dim + ndim : dim;
  return wrapped >= 0 && wrapped < ndim ? wrapped : wrap_odd_dim(dim, ndim, op);
}

}  // namespace lamina
