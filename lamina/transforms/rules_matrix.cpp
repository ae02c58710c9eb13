// Rules of products of vectors and matrices.
#include "lamina/ops/add.h"
#include "lamina/ops/conj.h"
#include "lamina/ops/linear.h"
#include "lamina/ops/matmul.h"
#include "lamina/ops/mul.h"
#include "lamina/ops/squeeze.h"
#include "lamina/ops/sum.h"
#include "lamina/ops/unsqueeze.h"
#include "lamina/ops/zeros_like.h"
#include "lamina/transforms/rules.h"

namespace lamina::transforms {

namespace {

// The product of two samples of given ranks, as the operators of the family define it.
Tensor product(const Frame& f, const Tensor& a, const Tensor& b) {
  const int64_t left = a.dim(), right = b.dim();
  const bool of_a = f.is_batched(a), of_b = f.is_batched(b);
  const Tensor x = of_a ? front(a, f.level) : a, y = of_b ? front(b, f.level) : b;
  if (left == 1 && right == 1) return ops::sum(ops::mul(x, y), Sizes{-1}, false, a.dtype());
  if (right == 1) {
    if (!of_b) return ops::matmul(x, y);
    return ops::squeeze(ops::matmul(x, ops::unsqueeze(y, -1)), -1);
  }
  return ops::matmul(x, y);
}

bool fits(const Tensor& a, const Tensor& b, int64_t left, int64_t right) {
  if (a.dim() != left || b.dim() != right || a.dtype() != b.dtype()) return false;
  if (left == 3 && a.sizes()[0] != b.sizes()[0]) return false;
  return a.sizes()[left - 1] == b.sizes()[right == 1 ? 0 : right - 2];
}

bool is_zero(const Value& v) {
  const auto* s = std::get_if<Scalar>(&v);
  const auto* i = std::get_if<int64_t>(&v);
  const auto* d = std::get_if<double>(&v);
  return (s && s->equals(0)) || (i && *i == 0) || (d && *d == 0);
}
Scalar number(const Value& v) {
  if (const auto* s = std::get_if<Scalar>(&v)) return *s;
  if (const auto* i = std::get_if<int64_t>(&v)) return Scalar(*i);
  if (const auto* b = std::get_if<bool>(&v)) return Scalar(*b);
  return Scalar(std::get<double>(v));
}

// beta * self + alpha * (a @ b)
bool sum_of_product(Frame& f, int64_t left, int64_t right) {
  const Tensor self = *f.tensor(0), a = *f.tensor(1), b = *f.tensor(2);
  if (!fits(a, b, left, right) || self.dtype() != a.dtype()) return false;
  const int64_t rank = right == 1 ? 1 : left;
  if (self.dim() > rank) return false;
  const Scalar beta = number(*f.argument("beta")), alpha = number(*f.argument("alpha"));
  // The operator brings the factors to the type of whole numbers; products below would not.
  if (is_integral(self.dtype(), true) && (beta.is_floating() || alpha.is_floating())) return false;
  const bool has_product = f.is_batched(a) || f.is_batched(b);
  Tensor whole = has_product ? product(f, a, b) : ops::unsqueeze(ops::matmul(a, b), 0);
  // Sizes of one sample must be able to take self, as the operator checks.
  for (int64_t i = 1; i <= self.dim(); ++i) {
    const int64_t n = self.sizes()[self.dim() - i];
    if (n != 1 && n != whole.sizes()[whole.dim() - i]) return false;
  }
  if (!alpha.equals(1)) whole = ops::mul(whole, alpha);
  if (!is_zero(*f.argument("beta"))) {
    const Tensor start = f.aligned(self, rank);
    whole = ops::add(whole, beta.equals(1) ? start : ops::mul(start, beta));
  } else if (!has_product) {
    whole = ops::add(whole, ops::zeros_like(f.aligned(self, rank)));
  }
  f.give(whole);
  return true;
}

}  // namespace

bool matrix(Frame& f) {
  if (f.writes()) return false;
  std::string_view name = f.op.info().name;
  name.remove_prefix(6);
  if (name == "addmm") return sum_of_product(f, 2, 2);
  if (name == "addmv") return sum_of_product(f, 2, 1);
  if (name == "baddbmm") return sum_of_product(f, 3, 3);
  const Tensor a = *f.tensor(0), b = *f.tensor(1);
  const int64_t left = name == "dot" || name == "vdot" ? 1 : name == "bmm" ? 3 : 2;
  const int64_t right = name == "mv" ? 1 : left;
  if (!fits(a, b, left, right)) return false;
  f.give(product(f, name == "vdot" ? ops::conj(a) : a, b));
  return true;
}

// linear takes any number of dimensions in front; with weights of each sample it is a product.
bool linear(Frame& f) {
  const Tensor* input = f.tensor(0);
  if (f.writes() || input->dim() == 0) return false;
  for (size_t i = 1; i < f.stack.size(); ++i)
    if (f.is_batched(f.stack[i])) return false;
  f.stack[0] = front(*input, f.level);
  f.call();
  return true;
}

}  // namespace lamina::transforms
