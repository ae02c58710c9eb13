// Products by shape.
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/ops.h"
#include "lamina/shape/broadcast.h"

namespace lamina::composite {

namespace {

[[noreturn]] void raise_inner(const Tensor& a, const Tensor& b, int64_t inner_a, int64_t inner_b) {
  raise(ErrorKind::Runtime,
        str("matmul: mat1 and mat2 shapes cannot be multiplied, the inner dimensions differ; got ",
            a.sizes(), " and ", b.sizes(), "; expected ", inner_a, " == ", inner_b));
}

// (..., n, m) @ (m, p): the batch becomes rows of one matrix product, where the rows lie in one
// matrix or copying them costs less than a product each.
Tensor fold(const Tensor& self, const Tensor& other) {
  const bool vector = other.dim() == 1;
  Sizes sizes{std::span<const int64_t>(self.sizes())};
  const int64_t m = sizes.back();
  sizes.pop_back();
  const Tensor rows = ops::reshape(self, {numel_of(sizes).value(), m});
  if (!vector) sizes.push_back(other.sizes()[1]);
  const Tensor product = vector ? ops::mv(rows, other) : ops::mm(rows, other);
  return ops::view(product, sizes);
}

}  // namespace

Tensor matmul(const Tensor& self, const Tensor& other) {
  const int64_t a = self.dim(), b = other.dim();
  LAMINA_CHECK(a > 0 && b > 0,
               "matmul: both arguments to matmul need to be at least 1D, but they are ", a,
               "D and ", b, "D");
  LAMINA_CHECK(self.dtype() == other.dtype(),
               "matmul: expected m1 and m2 to have the same dtype, but got: ",
               legacy_name(self.dtype()), " != ", legacy_name(other.dtype()));
  const int64_t inner_a = self.sizes()[a - 1], inner_b = other.sizes()[b == 1 ? 0 : b - 2];
  if (inner_a != inner_b) raise_inner(self, other, inner_a, inner_b);
  if (a == 1 && b == 1) return ops::dot(self, other);
  if (a == 2 && b == 1) return ops::mv(self, other);
  if (a == 1 && b == 2) return ops::mv(ops::t(other), self);
  if (a == 2 && b == 2) return ops::mm(self, other);
  if (b <= 2) return fold(self, other);
  if (a == 1)
    // x @ B is B^T @ x for each matrix.
    return fold(ops::transpose(other, -2, -1), self);
  if (a == 2) {
    // A @ B is (B^T @ A^T)^T: one product for the whole batch.
    return ops::transpose(fold(ops::transpose(other, -2, -1), ops::t(self)), -2, -1);
  }
  // Batches on both sides broadcast.
  const IntList batch_a(self.sizes().data(), static_cast<size_t>(a - 2)),
      batch_b(other.sizes().data(), static_cast<size_t>(b - 2));
  Sizes batch = broadcast_sizes(batch_a, batch_b, "matmul");
  const int64_t count = numel_of(batch);
  const int64_t n = self.sizes()[a - 2], p = other.sizes()[b - 1];
  Sizes left = batch, right = batch, result = batch;
  left.push_back(n);
  left.push_back(inner_a);
  right.push_back(inner_a);
  right.push_back(p);
  result.push_back(n);
  result.push_back(p);
  const Tensor x = ops::reshape(ops::expand(self, left), {count, n, inner_a});
  const Tensor y = ops::reshape(ops::expand(other, right), {count, inner_a, p});
  return ops::view(ops::bmm(x, y), result);
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  LAMINA_CHECK(weight.dim() <= 2 && weight.dim() >= 1,
               "linear: weight must be a matrix or a vector; got ", weight);
  LAMINA_CHECK(input.dim() >= 1, "linear: both arguments to matmul need to be at least 1D; got ",
               input);
  if (bias.defined() && weight.dim() == 2) {
    LAMINA_CHECK(input.sizes().back() == weight.sizes()[1],
                 "linear: mat1 and mat2 shapes cannot be multiplied, input.size(-1) and "
                 "weight.size(1) differ; got ",
                 input, " and ", weight);
    if (input.dim() == 2) return ops::addmm(bias, input, ops::t(weight));
    if (input.dim() > 2 && input.is_contiguous()) {
      Sizes sizes{std::span<const int64_t>(input.sizes())};
      const int64_t m = sizes.back();
      sizes.pop_back();
      const Tensor rows = ops::view(input, {numel_of(sizes).value(), m});
      sizes.push_back(weight.sizes()[0]);
      return ops::view(ops::addmm(bias, rows, ops::t(weight)), sizes);
    }
  }
  const Tensor product = ops::matmul(input, weight.dim() == 1 ? weight : ops::t(weight));
  return bias.defined() ? ops::add(product, bias) : product;
}

Tensor outer(const Tensor& self, const Tensor& vec2) {
  LAMINA_CHECK(self.dim() == 1, "outer: Expected 1-D argument self, but got ", self.dim(), "-D");
  LAMINA_CHECK(vec2.dim() == 1, "outer: Expected 1-D argument vec2, but got ", vec2.dim(), "-D");
  return ops::mul(ops::unsqueeze(self, 1), vec2);
}

}  // namespace lamina::composite
