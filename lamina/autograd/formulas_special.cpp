// Derivatives of special functions, of reductions by index and of running sums of exponentials.
#include <limits>
#include <numbers>

#include "lamina/autograd/formulas.h"
#include "lamina/kernels/result.h"

namespace lamina::autograd::formulas {

Tensor copied(const Tensor& view) { return ops::clone(view, MemoryFormat::Contiguous); }
std::vector<Tensor> copied(const std::vector<Tensor>& views) {
  std::vector<Tensor> out;
  for (const Tensor& v : views) out.push_back(copied(v));
  return out;
}

Tensor i1_slope(const Tensor& self, const Tensor& result) {
  const Tensor zero = self == Scalar(0);
  const Tensor safe = ops::where(zero, Scalar(1.0), self);
  return ops::where(zero, Scalar(0.5), ops::i0(safe) - result / safe);
}
Tensor i1e_slope(const Tensor& self, const Tensor& result) {
  const Tensor zero = self == Scalar(0);
  const Tensor safe = ops::where(zero, Scalar(1.0), self);
  const Tensor factor = ops::sgn(safe) + ops::reciprocal(safe);
  return ops::where(zero, Scalar(0.5), ops::special_i0e(safe) - result * factor);
}

Tensor sinc_slope(const Tensor& self) {
  const Tensor zero = self == Scalar(0);
  const Tensor x = ops::where(zero, Scalar(1.0), self * Scalar(std::numbers::pi));
  const Tensor slope = (x * ops::cos(x) - ops::sin(x)) / (x * ops::where(zero, Scalar(1.0), self));
  return ops::where(zero, self * Scalar(-std::numbers::pi * std::numbers::pi / 3), slope);
}

Tensor logit_slope(const Tensor& self) {
  const Tensor outside = ops::logical_or(self<Scalar(0), self> Scalar(1));
  return ops::masked_fill(ops::reciprocal(self * (Scalar(1) - self)), outside,
                          Scalar(std::numeric_limits<double>::quiet_NaN()));
}

Tensor xlog1py_weight(const Tensor& self, const Tensor& other) {
  return ops::masked_fill(ops::log1p(other),
                          ops::logical_and(self == Scalar(0), other <= Scalar(-1)), Scalar(0));
}
Tensor xlog1py_weight(const Tensor& self, const Scalar& other) {
  return xlog1py_weight(self, ops::full({}, other, self.dtype(), std::nullopt, self.device()));
}
Tensor zeta_slope(const Tensor& self, const Tensor& other) {
  return -self * ops::special_zeta(self + Scalar(1), other);
}
Tensor zeta_slope(const Scalar& self, const Tensor& other) {
  return ops::special_zeta(Scalar(self.to_double() + 1), other) * Scalar(-self.to_double());
}
Tensor igamma_slope(const Tensor& self, const Tensor& other) {
  return ops::exp(ops::xlogy(self - Scalar(1), other) - other - ops::lgamma(self));
}

Tensor polar_grad_abs(const Tensor& grad, const Tensor& angle) {
  return ops::real(grad * ops::polar(ops::ones_like(angle), -angle));
}
Tensor polar_grad_angle(const Tensor& grad, const Tensor& result) {
  return ops::real(grad *
                   ops::conj(polar_angle_tangent(ops::ones_like(ops::real(result)), result)));
}
Tensor polar_angle_tangent(const Tensor& tangent, const Tensor& result) {
  // i * result * tangent
  return ops::complex(-(ops::imag(result) * tangent), ops::real(result) * tangent);
}

namespace {

struct Factors {
  Tensor self, src;  // derivative of an element of the result by self's and by src's
};

// What is written at several places of one result counts for each; 1 where `include_self` counts
// self.
Tensor writers(const Tensor& like, int64_t dim, const Tensor& index, bool include_self) {
  const Tensor start = include_self ? ops::ones_like(like) : ops::zeros_like(like);
  return ops::scatter_add(start, dim, index, ops::ones(index.sizes(), like.dtype()));
}

Factors product_factors(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                        bool include_self) {
  // The product of all others: of the nonzero factors where at most one, this one, is zero.
  const Tensor self_zero = self == Scalar(0), src_zero = src == Scalar(0);
  const Tensor self_safe = ops::where(self_zero, Scalar(1.0), self),
               src_safe = ops::where(src_zero, Scalar(1.0), src);
  const Tensor all = ops::scatter_reduce(self_safe, dim, index, src_safe, "prod", include_self);
  Tensor zeros = ops::_to_dtype(self_zero, ScalarType::Int64);
  if (!include_self) zeros = ops::scatter(zeros, dim, index, Scalar(int64_t{0}));
  zeros = ops::scatter_add(zeros, dim, index, ops::_to_dtype(src_zero, ScalarType::Int64));
  if (!composed()) {
    const auto others = [](const Tensor& zero, const Tensor& count, const Tensor& product,
                           const Tensor& own) {
      const Tensor rest = count - ops::_to_dtype(zero, ScalarType::Int64);
      return ops::where(rest == Scalar(0), product / own, Scalar(0));
    };
    return {
        others(self_zero, zeros, all, self_safe),
        others(src_zero, ops::gather(zeros, dim, index), ops::gather(all, dim, index), src_safe)};
  }
  // Further derivatives see one other zero as a factor, and the product of two as
  // ((a + b)^2 - (a^2 + b^2)) / 2; those of more are zero up to the third.
  const auto total = [&](const Tensor& of_self, const Tensor& of_src) {
    return ops::scatter_add(
        include_self ? of_self : ops::scatter(of_self, dim, index, Scalar(int64_t{0})), dim, index,
        of_src);
  };
  const Tensor self_none = ops::where(self_zero, self, Scalar(0.0)),
               src_none = ops::where(src_zero, src, Scalar(0.0));
  const Tensor sum = total(self_none, src_none),
               squares = total(self_none * self_none, src_none * src_none);
  const auto others = [](const Tensor& zero, const Tensor& count, const Tensor& product,
                         const Tensor& own, const Tensor& none, const Tensor& sum,
                         const Tensor& squares) {
    const Tensor rest = count - ops::_to_dtype(zero, ScalarType::Int64);
    const Tensor one = sum - none, two = (one * one - (squares - none * none)) * Scalar(0.5);
    const Tensor more = ops::where(rest == Scalar(2), two, Scalar(0.0));
    return product / own *
           ops::where(rest == Scalar(0), Scalar(1.0), ops::where(rest == Scalar(1), one, more));
  };
  const auto at = [&](const Tensor& t) { return ops::gather(t, dim, index); };
  return {others(self_zero, zeros, all, self_safe, self_none, sum, squares),
          others(src_zero, at(zeros), at(all), src_safe, src_none, at(sum), at(squares))};
}

// Index and src may differ in size; what lies outside the index has no part in the result.
Tensor cut(const Tensor& src, const Tensor& index) {
  Tensor t = src;
  for (int64_t d = 0; d < t.dim() && d < index.dim(); ++d)
    if (t.sizes()[d] != index.sizes()[d]) t = ops::slice(t, d, 0, index.sizes()[d], 1);
  return t;
}

Factors factors(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                std::string_view reduce, bool include_self, const Tensor& result) {
  Factors f;
  if (reduce == "sum") {
    f = {ops::ones_like(self), ops::ones_like(src)};
  } else if (reduce == "mean") {
    const Tensor count =
        ops::clamp_min(writers(ops::detach(self), dim, index, include_self), Scalar(1));
    const Tensor part = ops::reciprocal(count);
    f = {part, ops::gather(part, dim, index)};
  } else if (reduce == "prod") {
    f = product_factors(self, dim, index, src, include_self);
  } else {
    // Equal extremes share.
    Tensor own = ops::_to_dtype(self == result, self.dtype());
    if (!include_self) own = ops::scatter(own, dim, index, Scalar(0));
    const Tensor theirs = ops::_to_dtype(src == ops::gather(result, dim, index), self.dtype());
    const Tensor count = ops::clamp_min(ops::scatter_add(own, dim, index, theirs), Scalar(1));
    return {own / count, theirs / ops::gather(count, dim, index)};
  }
  if (!include_self) f.self = ops::scatter(f.self, dim, index, Scalar(0));
  return f;
}

}  // namespace

std::array<Tensor, 2> scatter_reduce_grad(const Tensor& grad, const Tensor& self, int64_t dim,
                                          const Tensor& index, const Tensor& src,
                                          std::string_view reduce, bool include_self,
                                          const Tensor& result) {
  if (index.numel() == 0) return {grad, zeros_of(grad, src.sizes())};
  const Factors f = factors(self, dim, index, cut(src, index), reduce, include_self, result);
  return {mul_zero(grad, conj_of(f.self)),
          scatter_src_grad(mul_zero(ops::gather(grad, dim, index), conj_of(f.src)), src.sizes())};
}
Tensor scatter_reduce_self_tangent(const Tensor& tangent, const Tensor& self, int64_t dim,
                                   const Tensor& index, const Tensor& src, std::string_view reduce,
                                   bool include_self, const Tensor& result) {
  if (index.numel() == 0) return tangent;
  return mul_zero(tangent,
                  factors(self, dim, index, cut(src, index), reduce, include_self, result).self);
}
Tensor scatter_reduce_src_tangent(const Tensor& tangent, const Tensor& self, int64_t dim,
                                  const Tensor& index, const Tensor& src, std::string_view reduce,
                                  bool include_self, const Tensor& result) {
  if (index.numel() == 0) return zeros_of(tangent, self.sizes());
  const Tensor s = cut(src, index);
  const Factors f = factors(self, dim, index, s, reduce, include_self, result);
  return ops::scatter_add(zeros_of(tangent, self.sizes()), dim, index,
                          mul_zero(cut(tangent, index), f.src));
}

namespace {

// Whether exp(x - top) and exp(top - x) of all results stay inside the range of the type.
bool moderate(const Tensor& result, double limit) {
  const Tensor r = ops::detach(result);
  const double low = scalar_of(ops::min(r)).to_double(), high = scalar_of(ops::max(r)).to_double();
  return high - low < limit;  // not so for NaN and infinities
}

Tensor reversed_logs(const Tensor& t, int64_t dim) {
  return ops::flip(ops::logcumsumexp(ops::flip(t, {dim}), dim), {dim});
}
// sum over j of values[j] * exp(...) where the values are split by sign and go as logarithms.
template <class F>
Tensor by_sign(const Tensor& values, F&& sum_of_logs) {
  const Scalar none(-std::numeric_limits<double>::infinity());
  const Tensor size = ops::log(ops::abs(values));
  const Tensor up = ops::where(values > Scalar(0), size, none),
               down = ops::where(values < Scalar(0), size, none);
  return ops::exp(sum_of_logs(up)) - ops::exp(sum_of_logs(down));
}

}  // namespace

Tensor logcumsumexp_grad(const Tensor& grad, const Tensor& self, const Tensor& result,
                         int64_t dim) {
  if (self.dim() == 0 || self.numel() == 0) return grad;
  if (moderate(result, 80)) {
    const Tensor top = ops::detach(ops::max(result));
    return ops::exp(self - top) * flip_cumsum(grad * ops::exp(top - result), dim);
  }
  return by_sign(grad, [&](const Tensor& logs) {
    return reversed_logs(ops::where(ops::isinf(logs), logs, logs - result), dim) + self;
  });
}

Tensor logcumsumexp_tangent(const Tensor& tangent, const Tensor& self, const Tensor& result,
                            int64_t dim) {
  if (self.dim() == 0 || self.numel() == 0) return tangent;
  if (moderate(result, 80)) {
    const Tensor top = ops::detach(ops::max(result));
    return ops::exp(top - result) * ops::cumsum(tangent * ops::exp(self - top), dim);
  }
  return by_sign(tangent,
                 [&](const Tensor& logs) { return ops::logcumsumexp(logs + self, dim) - result; });
}

}  // namespace lamina::autograd::formulas
