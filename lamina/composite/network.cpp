// Dropout, attention and bilinear forms as calls of other operators.
#include <cmath>

#include "lamina/autograd/formulas.h"
#include "lamina/autograd/forward.h"
#include "lamina/autograd/variable.h"
#include "lamina/core/error.h"
#include "lamina/core/mode.h"
#include "lamina/generated/declarations.h"
#include "lamina/ops.h"
#include "lamina/shape/broadcast.h"

namespace lamina::composite {

namespace {

// 0 with probability p, else 1: for every element, or for every channel of (n, c, ...).
Tensor kept(const Tensor& self, double p, bool features, const char* op) {
  const Tensor x = ops::detach(self);
  if (!features) return ops::bernoulli_(ops::empty_like(x), 1 - p, Generator());
  LAMINA_CHECK(self.dim() >= 2, op,
               ": Feature dropout requires at least 2 dimensions in the input");
  Sizes sizes(static_cast<size_t>(self.dim()), 1);
  sizes[0] = self.size(0);
  sizes[1] = self.size(1);
  return ops::bernoulli_(ops::empty(sizes, self.dtype(), std::nullopt, self.device()), 1 - p,
                         Generator());
}

void check_probability(double p, const char* op) {
  LAMINA_CHECK(p >= 0 && p <= 1, op, ": dropout probability has to be between 0 and 1, but got ",
               p);
}

Tensor dropped(const Tensor& self, double p, bool train, bool features, const char* op) {
  check_probability(p, op);
  if (p == 0 || !train || self.numel() == 0) return self;
  if (p == 1) return ops::mul(self, ops::zeros_like(self));
  return self * ops::div(kept(self, p, features, op), Scalar(1 - p));
}

Tensor alpha_dropped(const Tensor& self, double p, bool train, bool features, const char* op) {
  check_probability(p, op);
  if (p == 0 || !train || self.numel() == 0) return self;
  if (p == 1) return ops::mul(self, ops::zeros_like(self));
  // What is dropped becomes selu's lower limit -scale * alpha; then mean and variance are restored.
  constexpr double kLimit = 1.7580993408473766;
  const double a = 1 / std::sqrt((kLimit * kLimit * p + 1) * (1 - p));
  const Tensor keep = kept(self, p, features, op);
  const Tensor shift = (keep - Scalar(1)) * Scalar(kLimit * a) + Scalar(kLimit * a * p);
  return self * (keep * Scalar(a)) + shift;
}

}  // namespace

Tensor dropout(const Tensor& self, double p, bool train) {
  return dropped(self, p, train, false, "dropout");
}
Tensor feature_dropout(const Tensor& self, double p, bool train) {
  return dropped(self, p, train, true, "feature_dropout");
}
Tensor alpha_dropout(const Tensor& self, double p, bool train) {
  return alpha_dropped(self, p, train, false, "alpha_dropout");
}
Tensor feature_alpha_dropout(const Tensor& self, double p, bool train) {
  return alpha_dropped(self, p, train, true, "feature_alpha_dropout");
}

std::tuple<Tensor, Tensor> native_dropout(const Tensor& input, double p,
                                          std::optional<bool> train) {
  check_probability(p, "native_dropout");
  if (!train.value_or(true) || input.numel() == 0)
    return {input, ops::ones_like(input, ScalarType::Bool)};
  const Tensor mask =
      p == 1 ? ops::zeros_like(input, ScalarType::Bool)
             : ops::_to_dtype(kept(input, p, false, "native_dropout"), ScalarType::Bool);
  return {input * mask * Scalar(p == 1 ? 0.0 : 1 / (1 - p)), mask};
}

Tensor bilinear(const Tensor& input1, const Tensor& input2, const Tensor& weight,
                const Tensor& bias) {
  LAMINA_CHECK(input1.dim() == input2.dim(), "bilinear(): input dimensions do not match: got ",
               input1.dim(), " and ", input2.dim());
  LAMINA_CHECK(weight.dim() == 3 && input1.dim() >= 1, "bilinear(): weight must be (o, a, b); got ",
               weight);
  for (int64_t i = 0; i + 1 < input1.dim(); ++i)
    LAMINA_CHECK(input1.size(i) == input2.size(i),
                 "bilinear(): input batch dimensions do not match "
                 "at dim ",
                 i, ": got ", input1.size(i), " and ", input2.size(i));
  LAMINA_CHECK(input1.size(-1) == weight.size(1) && input2.size(-1) == weight.size(2),
               "bilinear(): input sizes do not match weight sizes: got ", input1.size(-1), " and ",
               input2.size(-1), " but expected ", weight.size(1), " and ", weight.size(2));
  LAMINA_CHECK(!bias.defined() || bias.size(0) == weight.size(0),
               "bilinear(): bias size does not match weight size: got ",
               bias.defined() ? bias.size(0) : 0, " but expected ", weight.size(0));
  LAMINA_CHECK(input1.dtype() == input2.dtype() && input1.dtype() == weight.dtype() &&
                   (!bias.defined() || bias.dtype() == weight.dtype()),
               "bilinear(): All tensors must have the same dtype; got ", input1, ", ", input2, ", ",
               weight, " and bias ", bias.defined() ? bias.dtype() : weight.dtype());
  const int64_t out = weight.size(0), a = weight.size(1), b = weight.size(2);
  Sizes sizes(std::span<const int64_t>(input1.sizes()));
  sizes.back() = out;
  const Tensor left = ops::reshape(input1, IntList({-1, a})),
               right = ops::reshape(input2, IntList({-1, b}));
  // (rows, a) @ (a, o * b), then the sum over b.
  const Tensor folded =
      ops::reshape(ops::permute(weight, IntList({1, 0, 2})), IntList({a, out * b}));
  const Tensor products = ops::reshape(ops::mm(left, folded), IntList({left.size(0), out, b}));
  const Tensor sum =
      ops::sum(products * ops::unsqueeze(right, 1), IntList({2}), false, products.dtype());
  const Tensor result = ops::reshape(sum, sizes);
  return bias.defined() ? result + bias : result;
}

Tensor safe_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  // What sees nothing is cut off before softmax, too, whose derivative there is NaN.
  const Tensor empty = ops::all(ops::detach(self) == Scalar(-INFINITY), IntList({dim}), true);
  const Tensor weights = ops::softmax(ops::masked_fill(self, empty, Scalar(0)), dim, dtype);
  return ops::masked_fill(weights, empty, Scalar(0));
}

namespace {

Tensor attention_of_operators(const Tensor& query, const Tensor& key, const Tensor& value,
                              const Tensor& mask, double dropout_p, bool is_causal, double scale) {
  if (query.dtype() == ScalarType::Float16 || query.dtype() == ScalarType::BFloat16) {
    // Scores of 16-bit types would lose the digits that tell keys apart.
    const auto wide = [](const Tensor& t) {
      return t.defined() ? ops::_to_dtype(t, ScalarType::Float32) : t;
    };
    return ops::_to_dtype(attention_of_operators(wide(query), wide(key), wide(value), wide(mask),
                                                 dropout_p, is_causal, scale),
                          query.dtype());
  }
  // The root of the scale on either side keeps products in range.
  const double root = std::sqrt(std::abs(scale));
  const Tensor q = query * Scalar(std::copysign(root, scale)), k = key * Scalar(root);
  const Tensor scores = ops::matmul(q, ops::transpose(k, -2, -1));
  Tensor seen = mask;
  if (is_causal) {
    const Tensor ones = ops::ones(IntList({query.size(-2), key.size(-2)}), ScalarType::Bool,
                                  std::nullopt, query.device());
    seen = ops::where(ops::tril(ones, 0), Scalar(0.0), Scalar(-INFINITY));
    seen = ops::_to_dtype(seen, query.dtype());
  }
  Tensor weights = seen.defined() ? safe_softmax(scores + seen, -1, std::nullopt)
                                  : ops::softmax(scores, -1, std::nullopt);
  if (dropout_p > 0) weights = dropout(weights, dropout_p, true);
  return ops::matmul(weights, value);
}

bool fits_kernel(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask,
                 double dropout_p) {
  if (dropout_p > 0 || autograd::forward::t_visible || !q.device().is_cpu()) return false;
  if (q.dim() < 3 || q.dim() > 4 || q.dim() != k.dim() || q.dim() != v.dim()) return false;
  if (!is_floating(q.dtype()) || q.dtype() != k.dtype() || q.dtype() != v.dtype()) return false;
  for (int64_t i = 0; i + 2 < q.dim(); ++i)
    if (q.size(i) != k.size(i) || q.size(i) != v.size(i)) return false;
  if (q.numel() == 0 || k.numel() == 0 || v.numel() == 0) return false;
  return !mask.defined() || !autograd::recording(mask);
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const Tensor& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale, bool enable_gqa) {
  constexpr const char* kName = "scaled_dot_product_attention";
  LAMINA_CHECK(query.dtype() == key.dtype() && query.dtype() == value.dtype(), kName,
               ": Expected query, key, and value to have the same dtype, but got query.dtype: ",
               query.dtype(), " key.dtype: ", key.dtype(), " and value.dtype: ", value.dtype(),
               " instead.");
  LAMINA_CHECK(query.dim() >= 2 && key.dim() >= 2 && value.dim() >= 2, kName,
               ": Expected query, key, and value to all be at least 2 dimensional, but got ",
               query.dim(), ", ", key.dim(), " and ", value.dim());
  LAMINA_CHECK(query.size(-1) == key.size(-1) && key.size(-2) == value.size(-2), kName,
               ": sizes do not fit; got query ", query.sizes(), ", key ", key.sizes(), ", value ",
               value.sizes());
  LAMINA_CHECK(!is_causal || !attn_mask.defined(), kName,
               ": Explicit attn_mask should not be set when is_causal=True");
  Tensor k = key, v = value;
  if (enable_gqa) {
    LAMINA_CHECK(query.dim() >= 3 && key.dim() >= 3 && value.dim() >= 3 && key.size(-3) > 0 &&
                     value.size(-3) > 0 && query.size(-3) % key.size(-3) == 0 &&
                     query.size(-3) % value.size(-3) == 0,
                 kName,
                 ": Number of heads in key and value must divide the number of heads in "
                 "query");
    if (key.size(-3) != query.size(-3))
      k = ops::repeat_interleave(key, query.size(-3) / key.size(-3), -3, std::nullopt);
    if (value.size(-3) != query.size(-3))
      v = ops::repeat_interleave(value, query.size(-3) / value.size(-3), -3, std::nullopt);
  }
  Tensor mask = attn_mask;
  if (mask.defined() && mask.dtype() == ScalarType::Bool)
    mask = ops::_to_dtype(ops::where(mask, Scalar(0.0), Scalar(-INFINITY)), query.dtype());
  LAMINA_CHECK(
      !mask.defined() || mask.dtype() == query.dtype() || mask.dtype() == ScalarType::Float32,
      kName,
      ": Expected attn_mask dtype to be bool or float or to match query dtype, but "
      "got attn_mask.dtype: ",
      mask.defined() ? mask.dtype() : ScalarType::Bool, " and  query.dtype: ", query.dtype(),
      " instead.");
  const double factor =
      scale.value_or(1 / std::sqrt(static_cast<double>(std::max<int64_t>(query.size(-1), 1))));
  if (fits_kernel(query, k, v, mask, dropout_p)) {
    if (mask.defined()) {
      Sizes sizes(std::span<const int64_t>(query.sizes()));
      sizes.back() = k.size(-2);
      mask = ops::expand(mask, sizes);
    }
    return ops::_fused_attention(query, k, v, mask, is_causal, factor);
  }
  return attention_of_operators(query, k, v, mask, dropout_p, is_causal, factor);
}

Tensor self_attention(const Tensor& input, int64_t num_heads, const Tensor& in_weight,
                      const Tensor& in_bias, const Tensor& out_weight, const Tensor& out_bias,
                      double dropout_p, bool is_causal, bool batch_first) {
  LAMINA_CHECK(input.dim() == 3, "_self_attention: input must be (l, n, e); got ", input);
  LAMINA_CHECK(num_heads > 0 && input.size(2) % num_heads == 0 && in_weight.dim() == 2 &&
                   in_weight.size(0) == 3 * input.size(2),
               "_self_attention: sizes do not fit; got input ", input, ", in_weight ", in_weight,
               " and ", num_heads, " heads; expected in_weight (3 e, e) and heads that divide e");
  const int64_t rows = input.size(0), columns = input.size(1), size = input.size(2);
  const Tensor all = ops::view(ops::linear(input, in_weight, in_bias),
                               IntList({rows, columns, 3, num_heads, size / num_heads}));
  // (3, n, heads, l, e / heads)
  const auto parts = ops::unbind(
      ops::permute(all, batch_first ? IntList({2, 0, 3, 1, 4}) : IntList({2, 1, 3, 0, 4})), 0);
  const Tensor joined = ops::scaled_dot_product_attention(parts[0], parts[1], parts[2], Tensor(),
                                                          dropout_p, is_causal);
  const Tensor back =
      ops::permute(joined, batch_first ? IntList({0, 2, 1, 3}) : IntList({2, 0, 1, 3}));
  return ops::linear(ops::reshape(back, IntList({rows, columns, size})), out_weight, out_bias);
}

}  // namespace lamina::composite
