// Functions of square matrices, and products of many.
#include <array>
#include <cmath>

#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"
#include "lamina/ops.h"
#include "lamina/shape/linalg.h"

namespace lamina::composite {

Tensor matrix_power(const Tensor& self, int64_t n) {
  check_square(self, "linalg.matrix_power");
  Tensor base = self;
  uint64_t power = static_cast<uint64_t>(n);
  if (n < 0) {
    base = linalg_inv(self);
    power = 0 - power;
  }
  if (power == 0)
    return ops::copy_(ops::clone(self),  // a constant, but of the graph
                      ops::eye(columns_of(self), self.dtype(), std::nullopt, self.device()));
  if (power == 1) return ops::clone(base);
  Tensor result;
  for (;;) {
    if (power & 1) result = result.defined() ? ops::matmul(result, base) : base;
    power >>= 1;
    if (power == 0) return result;
    base = ops::matmul(base, base);
  }
}

namespace {

// Sum of x^k / k!, k < 4 * groups, in groups + 2 products (Paterson and Stockmeyer, 1973): four
// powers, then Horner's rule in the fourth.
Tensor taylor(const Tensor& x, int groups) {
  const Tensor unit = ops::eye(columns_of(x), x.dtype(), std::nullopt, x.device());
  const Tensor x2 = ops::matmul(x, x), x3 = ops::matmul(x2, x);
  double factor[20] = {1};
  for (int k = 1; k < 20; ++k) factor[k] = factor[k - 1] / k;
  const auto group = [&](int k) {
    Tensor sum = ops::add(ops::mul(unit, factor[k]), x, factor[k + 1]);
    return ops::add(ops::add(sum, x2, factor[k + 2]), x3, factor[k + 3]);
  };
  Tensor result = group(4 * (groups - 1));
  if (groups == 1) return result;
  const Tensor x4 = ops::matmul(x2, x2);
  for (int k = 4 * (groups - 2); k >= 0; k -= 4)
    result = ops::add(group(k), ops::matmul(result, x4));
  return result;
}

// Norms up to which a polynomial of so many groups leaves less than the last bit of the value and
// of its derivative: norm^m / m! is 1e-16, of float32 1e-9, m the degree.
struct Reach {
  int groups;
  double norm64, norm32;
};
constexpr Reach kReaches[] = {{1, 8e-6, 1.8e-3}, {2, 0.017, 0.17}, {3, 0.21, 0.74}, {5, 1.1, 1.1}};

}  // namespace

Tensor matrix_exp(const Tensor& self) {
  const char* const op = "linalg.matrix_exp";
  check_square(self, op);
  LAMINA_CHECK(is_differentiable(self.dtype()), op,
               ": Expected a floating point or complex tensor as input. Got ",
               legacy_name(self.dtype()));
  if (self.numel() == 0 || self.is_meta()) return ops::clone(self);
  // In double: squaring doubles the relative error every time.
  const bool is_double = to_real(self.dtype()) == ScalarType::Float64;
  const Tensor x = is_double ? self
                             : ops::_to_dtype(self, self.is_complex() ? ScalarType::Complex128
                                                                      : ScalarType::Float64);
  const Tensor norm =
      ops::amax(ops::sum(ops::abs(ops::detach(x)), IntList({-2}), false), {-1}, true);
  const double largest = scalar_of(ops::amax(norm)).to_double();
  Reach reach = kReaches[0];
  for (const Reach& r : kReaches) {
    reach = r;
    if (largest <= (is_double ? r.norm64 : r.norm32) || (!is_double && r.groups == 3)) break;
  }
  // Each is scaled by a power of two that brings it within reach, and squared as often.
  const Tensor halvings = ops::unsqueeze(
      ops::clamp_min(ops::ceil(ops::log2(
                         ops::mul(norm, Scalar(1 / (is_double ? reach.norm64 : reach.norm32))))),
                     Scalar(0)),
      -1);
  const Tensor finite = ops::nan_to_num(halvings, 0.0, 0.0, 0.0);
  const double most = scalar_of(ops::amax(finite)).to_double();
  Tensor result = taylor(most == 0 ? x : ops::mul(x, ops::exp2(ops::neg(finite))), reach.groups);
  for (double step = 0; step < most; ++step) {
    const Tensor square = ops::matmul(result, result);
    result = self.dim() == 2 ? square : ops::where(ops::gt(finite, Scalar(step)), square, result);
  }
  return is_double ? result : ops::_to_dtype(result, self.dtype());
}

namespace {

// Multiplications for the product of tensors i to j in the best order, and where to cut; Cormen et
// al., Introduction to Algorithms, section 15.2.
class ChainOrder {
 public:
  explicit ChainOrder(const std::vector<Tensor>& list) : list_(list), n_(list.size()) {
    std::vector<double> size(n_ + 1);
    for (size_t i = 0; i < n_; ++i) size[i] = double(list[i].sizes()[0]);
    size[n_] = double(list[n_ - 1].sizes()[1]);
    cut_.assign(n_ * n_, 0);
    std::vector<double> cost(n_ * n_, 0);
    for (size_t length = 2; length <= n_; ++length)
      for (size_t i = 0; i + length <= n_; ++i) {
        const size_t j = i + length - 1;
        cost[i * n_ + j] = INFINITY;
        for (size_t k = i; k < j; ++k) {
          const double c =
              cost[i * n_ + k] + cost[(k + 1) * n_ + j] + size[i] * size[k + 1] * size[j + 1];
          if (c < cost[i * n_ + j]) {
            cost[i * n_ + j] = c;
            cut_[i * n_ + j] = k;
          }
        }
      }
  }
  Tensor product(size_t i, size_t j) const {
    if (i == j) return list_[i];
    const size_t k = cut_[i * n_ + j];
    return ops::mm(product(i, k), product(k + 1, j));
  }

 private:
  const std::vector<Tensor>& list_;
  size_t n_;
  std::vector<size_t> cut_;
};

}  // namespace

Tensor multi_dot(TensorList tensors) {
  const char* const op = "linalg.multi_dot";
  const size_t n = tensors.size();
  LAMINA_CHECK(n >= 2, op, ": expected at least 2 tensors but got ", n);
  LAMINA_CHECK(n <= 2048, op, ": expected at most 2048 tensors but got ", n);
  std::vector<Tensor> list(tensors.begin(), tensors.end());
  const auto matrix = [&](size_t i, bool row) {
    const Tensor& t = list[i];
    LAMINA_CHECK(t.dim() == 1 || t.dim() == 2, op, ": the ", i == 0 ? "first" : "last",
                 " tensor must be 1D or 2D but got ", t);
    const bool vector = t.dim() == 1;
    if (vector) list[i] = ops::unsqueeze(t, row ? 0 : 1);
    return vector;
  };
  const bool from_vector = matrix(0, true), to_vector = matrix(n - 1, false);
  Sizes result;
  for (size_t i = 0; i < n; ++i) {
    LAMINA_CHECK(list[i].dim() == 2, op, ": tensor ", i, " must be 2D but got ", list[i]);
    LAMINA_CHECK(list[i].dtype() == list[0].dtype(), op,
                 ": all tensors must have be the same dtype; tensor 0 is ", list[0], " and tensor ",
                 i, " ", list[i]);
    LAMINA_CHECK(i == 0 || list[i - 1].sizes()[1] == list[i].sizes()[0], op, ": tensors ", i - 1,
                 " and ", i, " cannot be multiplied; got ", list[i - 1], " and ", list[i]);
  }
  if (!from_vector) result.push_back(list[0].sizes()[0]);
  if (!to_vector) result.push_back(list[n - 1].sizes()[1]);
  return ops::reshape(ChainOrder(list).product(0, n - 1), result);
}

}  // namespace lamina::composite
