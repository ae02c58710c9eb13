// Products of vectors and matrices that are calls of others, norms of differences, powers.
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/ops.h"
#include "lamina/shape/broadcast.h"
#include "lamina/shape/promotion.h"
#include "lamina/tensor_operators.h"

namespace lamina::composite {

Tensor kron(const Tensor& self, const Tensor& other) {
  const int64_t n = std::max(self.dim(), other.dim());
  Sizes a, b, joined;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at_a = i - (n - self.dim()), at_b = i - (n - other.dim());
    const int64_t size_a = at_a < 0 ? 1 : self.sizes()[at_a],
                  size_b = at_b < 0 ? 1 : other.sizes()[at_b];
    a.push_back(size_a);
    a.push_back(1);
    b.push_back(1);
    b.push_back(size_b);
    int64_t both;
    LAMINA_CHECK(!__builtin_mul_overflow(size_a, size_b, &both), "kron: the result is too large");
    joined.push_back(both);
  }
  LAMINA_CHECK(n <= 32, "kron: too many dimensions; got ", n, "; expected at most 32");
  return ops::reshape(ops::mul(ops::reshape(self, a), ops::reshape(other, b)), joined);
}

namespace {
// Component i of the result is a[i + 1] b[i + 2] - a[i + 2] b[i + 1], indices modulo 3.
Tensor crossed(const Tensor& self, const Tensor& other, int64_t dim) {
  const auto turned = [dim](const Tensor& t, int64_t by) { return ops::roll(t, {by}, {dim}); };
  return ops::sub(ops::mul(turned(self, -1), turned(other, -2)),
                  ops::mul(turned(self, -2), turned(other, -1)));
}
}  // namespace

Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim) {
  LAMINA_CHECK(self.dim() == other.dim(),
               "linalg.cross: inputs must have the same number of dimensions; got ", self, " and ",
               other);
  const int64_t d = wrap_dim(dim, self.dim(), "linalg.cross");
  LAMINA_CHECK(self.dim() > 0 && self.sizes()[d] == 3 && other.sizes()[d] == 3,
               "linalg.cross: inputs dimension ", dim, " must have length 3. Got ", self, " and ",
               other);
  const Sizes sizes = broadcast_sizes(self.sizes(), other.sizes(), "linalg.cross");
  return crossed(ops::expand(self, sizes), ops::expand(other, sizes), d);
}

Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  if (dim) return linalg_cross(self, other, *dim);
  for (int64_t d = 0; d < self.dim(); ++d)
    if (self.sizes()[d] == 3) return linalg_cross(self, other, d);
  raise(ErrorKind::Runtime, str("cross: no dimension of size 3 in input; got ", self));
}

Tensor vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  LAMINA_CHECK(is_floating(x.dtype()) || is_complex(x.dtype()),
               "linalg.vecdot: Expected a floating point or complex tensor as input. Got ",
               legacy_name(x.dtype()));
  LAMINA_CHECK(x.dtype() == y.dtype(),
               "linalg.vecdot: Expected x and y to have the same dtype; got ", x, " and ", y);
  const Sizes sizes = broadcast_sizes(x.sizes(), y.sizes(), "linalg.vecdot");
  const int64_t d = wrap_dim(dim, static_cast<int64_t>(sizes.size()), "linalg.vecdot");
  if (sizes.empty()) return ops::mul(ops::conj(x), y);
  return ops::sum(ops::mul(ops::conj(x), y), IntList({d}), false);
}

namespace {
// beta * self + alpha * product in the type of all; with beta 0 self does not matter.
Tensor mixed(const Tensor& self, const Tensor& product, const Scalar& beta, const Scalar& alpha,
             const char* op) {
  const ScalarType type = promote_types(self.dtype(), product.dtype());
  if (is_integral(type, true))
    LAMINA_CHECK(
        !alpha.is_floating() && !beta.is_floating() && !alpha.is_complex() && !beta.is_complex(),
        op,
        ": For integral input tensors, argument alpha and beta must not be floating point "
        "numbers");
  const bool bools = type == ScalarType::Bool;
  const auto times = [&](const Tensor& t, const Scalar& s) {
    if (bools) return s.equals(0) ? ops::zeros_like(t) : t;
    return s.equals(1) ? t : ops::mul(t, s);
  };
  const Tensor right = times(product, alpha);
  Tensor out = beta.equals(0) ? right : ops::add(times(self, beta), right);
  if (out.dtype() != type) out = ops::_to_dtype(out, type);
  return out;
}
}  // namespace

Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
            const Scalar& alpha) {
  LAMINA_CHECK(vec1.dim() == 1 && vec2.dim() == 1, "addr: Expected vec1 and vec2 to be 1-D; got ",
               vec1, " and ", vec2);
  LAMINA_CHECK(is_expandable(self.sizes(), Sizes{vec1.numel(), vec2.numel()}),
               "addr: the expanded size of self must match that of the product; got ", self,
               ", vec1 ", vec1, " and vec2 ", vec2);
  return mixed(self, ops::mul(ops::unsqueeze(vec1, 1), vec2), beta, alpha, "addr");
}

Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
              const Scalar& alpha) {
  LAMINA_CHECK(batch1.dim() == 3 && batch2.dim() == 3,
               "addbmm: batch1 and batch2 must be 3D tensors; got ", batch1, " and ", batch2);
  LAMINA_CHECK(batch1.sizes()[0] == batch2.sizes()[0] && batch1.sizes()[2] == batch2.sizes()[1],
               "addbmm: batch1 and batch2 must have the same number of batches and fitting "
               "matrices; got ",
               batch1, " and ", batch2);
  LAMINA_CHECK(self.dtype() == batch1.dtype() && batch1.dtype() == batch2.dtype(),
               "addbmm: Input dtypes must be the same; got ", self, ", ", batch1, " and ", batch2);
  const int64_t b = batch1.sizes()[0], n = batch1.sizes()[1], m = batch1.sizes()[2],
                p = batch2.sizes()[2];
  LAMINA_CHECK(is_expandable(self.sizes(), Sizes{n, p}),
               "addbmm: the expanded size of self must match that of the product; got ", self,
               "; expected ", Sizes{n, p});
  // The sum over the batch is one product of the matrices side by side.
  const Tensor left = ops::reshape(ops::permute(batch1, {1, 0, 2}), {n, b * m});
  const auto fitting = [&](const Scalar& s) {
    return is_integral(self.dtype(), true) ? Scalar(s.to_int()) : s;
  };
  return ops::addmm(self, left, ops::reshape(batch2, {b * m, p}), fitting(beta), fitting(alpha));
}

Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p) {
  return ops::linalg_vector_norm(ops::sub(self, other), p);
}

Tensor renorm(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  LAMINA_CHECK(self.dim() > 1, "renorm: input needs at least 2 dimensions, got ", self.dim(),
               " dimensions");
  LAMINA_CHECK(!p.is_complex() && p.to_double() > 0, "renorm: non-positive norm not supported");
  LAMINA_CHECK(!maxnorm.is_complex() && maxnorm.to_double() >= 0,
               "renorm: expected maxnorm to be >= 0 but got ", maxnorm.to_double());
  const int64_t d = wrap_dim(dim, self.dim(), "renorm");
  Sizes others;
  for (int64_t i = 0; i < self.dim(); ++i)
    if (i != d) others.push_back(i);
  const bool small = is_reduced_floating(self.dtype());
  const Tensor x = small ? ops::_to_dtype(self, ScalarType::Float32) : self;
  const Tensor norm = ops::linalg_vector_norm(x, p, std::optional<IntList>(others), true);
  // The small number keeps the norm of what was scaled below maxnorm.
  const Tensor factor =
      ops::where(ops::gt(norm, maxnorm),
                 ops::mul(ops::reciprocal(ops::add(norm, Scalar(1e-7))), maxnorm), Scalar(1.0));
  const Tensor out = ops::mul(x, factor);
  return small ? ops::_to_dtype(out, self.dtype()) : out;
}

Tensor linalg_vander(const Tensor& x, std::optional<int64_t> n) {
  LAMINA_CHECK(x.dtype() != ScalarType::Bool, "linalg.vander: expected a number type; got ", x);
  LAMINA_CHECK(
      x.dim() > 0 || n,
      "linalg.vander: The input tensor must have at least one dimension where N is not given.");
  if (x.dim() == 0) return linalg_vander(ops::unsqueeze(x, 0), n);
  const int64_t count = n.value_or(x.sizes()[x.dim() - 1]);
  LAMINA_CHECK(count > 1, "linalg.vander: N must be greater than 1; got ", count);
  Sizes sizes{std::span<const int64_t>(x.sizes())};
  sizes.push_back(count - 1);
  Tensor powers = ops::cumprod(ops::expand(ops::unsqueeze(x, -1), sizes), -1);
  sizes.back() = 1;
  powers = ops::_to_dtype(powers, is_integral(x.dtype()) ? ScalarType::Int64 : x.dtype());
  const Tensor ones = ops::ones(sizes, powers.dtype(), std::nullopt, x.device());
  return ops::cat(std::vector<Tensor>{ones, powers}, -1);
}

Tensor vander(const Tensor& x, std::optional<int64_t> n, bool increasing) {
  LAMINA_CHECK(x.dim() == 1, "vander: x must be a one-dimensional tensor; got ", x);
  const int64_t count = n.value_or(x.numel());
  LAMINA_CHECK(count >= 0, "vander: N must be non-negative; got ", count);
  const ScalarType type = is_integral(x.dtype(), true) ? ScalarType::Int64 : x.dtype();
  Tensor out = ops::ones({x.numel(), count}, type, std::nullopt, x.device());
  if (count > 1) out = linalg_vander(ops::_to_dtype(x, type), count);
  return increasing ? out : ops::flip(out, {1});
}

}  // namespace lamina::composite
