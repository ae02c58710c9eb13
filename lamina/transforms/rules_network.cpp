// Rules of the operators of networks: images, convolutions, embeddings, normalizations.
#include <algorithm>

#include "lamina/ops/add.h"
#include "lamina/ops/convolution.h"
#include "lamina/ops/flatten.h"
#include "lamina/ops/mul.h"
#include "lamina/ops/native_layer_norm.h"
#include "lamina/ops/permute.h"
#include "lamina/ops/reshape.h"
#include "lamina/ops/unsqueeze.h"
#include "lamina/transforms/rules.h"

namespace lamina::transforms {

namespace {

// Samples and items of a batch as one dimension, and back.
Tensor folded(const Tensor& value) { return ops::flatten(value, 0, 1); }
Tensor unfolded(const Tensor& t, int64_t size, int64_t items) {
  Sizes sizes{size, items};
  for (int64_t i = 1; i < t.dim(); ++i) sizes.push_back(t.sizes()[i]);
  return ops::reshape(t, sizes);
}

int64_t spatial_of(const Frame& f) {
  const std::string_view name = f.op.info().name;
  if (name == "aten::col2im") return 1;
  if (name == "aten::im2col" || name.find("2d") != std::string_view::npos) return 2;
  if (name.find("1d") != std::string_view::npos) return 1;
  if (name.find("3d") != std::string_view::npos) return 3;
  if (const Value* v = f.argument("spatial")) return std::get<int64_t>(*v);
  if (const Value* v = f.argument("kernel_size"))
    return static_cast<int64_t>(std::get<std::vector<int64_t>>(*v).size());
  if (f.tensor(0)) return f.tensor(0)->dim() - 2;  // grids: always items of a batch
  return -1;
}

}  // namespace

// Operators on (items, channels, ...) or (channels, ...): samples are more items.
bool images(Frame& f) {
  const int64_t spatial = spatial_of(f);
  if (spatial < 1 || f.writes()) return false;
  int64_t rank = -1;
  bool same = true, empty = false;
  for (const Value& v : f.stack) {
    const auto* t = std::get_if<Tensor>(&v);
    if (!t || !t->defined()) continue;
    same &= rank < 0 || t->dim() == rank;
    rank = t->dim();
    empty |= t->numel() == 0;
  }
  if (!same || empty || f.size == 0 || (rank != spatial + 1 && rank != spatial + 2)) return false;
  const bool items = rank == spatial + 2;
  const int64_t count = items ? f.tensor(0)->sizes()[0] : 1;
  for (const Value& v : f.stack)
    if (const auto* t = std::get_if<Tensor>(&v); items && t && t->sizes()[0] != count) return false;
  for (Value& v : f.stack)
    if (auto* t = std::get_if<Tensor>(&v)) {
      *t = f.with_samples(*t);
      if (items) *t = folded(*t);
    }
  if (!items) {
    f.call();
    return true;
  }
  f.op.call_boxed(f.stack);
  for (Value& v : f.stack)
    if (auto* t = std::get_if<Tensor>(&v); t && t->defined())
      *t = wrap(unfolded(*t, f.size, count), 0, f.level);
  return true;
}

// Samples of the input are more items of its batch; samples of the weight are more groups.
bool convolve(Frame& f) {
  const Tensor input = *f.tensor(0), weight = *f.tensor(1);
  const Tensor bias = f.tensor(2) ? *f.tensor(2) : Tensor();
  const bool transposed = std::get<bool>(f.stack[6]);
  const int64_t groups = std::get<int64_t>(f.stack[8]);
  const int64_t rank = input.dim();
  if (rank < 3 || weight.dim() != rank || f.size == 0 || input.numel() == 0 || groups < 1 ||
      weight.numel() == 0)
    return false;
  if (bias.defined() && (bias.dim() != 1 || bias.dtype() != input.dtype())) return false;
  const auto list = [&](size_t i) -> const std::vector<int64_t>& {
    return std::get<std::vector<int64_t>>(f.stack[i]);
  };
  const auto run = [&](const Tensor& x, const Tensor& w, const Tensor& b, int64_t g) {
    return ops::convolution(x, w, b, list(3), list(4), list(5), transposed, list(7), g);
  };
  const bool late_bias = bias.defined() && f.is_batched(bias);
  const Tensor early = late_bias ? Tensor() : bias;
  Tensor out;  // (size, items, channels, ...)
  if (!f.is_batched(weight)) {
    const int64_t items = input.sizes()[0];
    if (f.is_batched(input))
      out = unfolded(run(folded(front(input, f.level)), weight, early, groups), f.size, items);
    else
      out = ops::unsqueeze(run(input, weight, early, groups), 0);
  } else {
    // Channels of the samples one after the other, each with groups of its own.
    const Tensor x = f.with_samples(input);  // (size, items, channels, ...)
    Sizes order{1, 0};
    for (int64_t i = 2; i <= rank; ++i) order.push_back(i);
    const Tensor side_by_side = ops::flatten(ops::permute(x, order), 1, 2);
    const Tensor w = folded(front(weight, f.level));
    Tensor b;
    if (bias.defined()) b = ops::flatten(f.with_samples(bias), 0, 1);
    const Tensor y = run(side_by_side, w, b, groups * f.size);  // (items, size * channels, ...)
    Sizes sizes{y.sizes()[0], f.size, y.sizes()[1] / f.size};
    for (int64_t i = 2; i < y.dim(); ++i) sizes.push_back(y.sizes()[i]);
    Sizes back{1, 0};
    for (int64_t i = 2; i <= y.dim(); ++i) back.push_back(i);
    f.give(ops::permute(ops::reshape(y, sizes), back));
    return true;
  }
  if (late_bias) {
    Sizes sizes{f.size, 1, bias.sizes()[0]};
    for (int64_t i = 2; i < rank; ++i) sizes.push_back(1);
    out = ops::add(out, ops::reshape(front(bias, f.level), sizes));
  }
  f.give(out);
  return true;
}

// Rows of one table, for any number of indices.
bool embed(Frame& f) {
  if (f.is_batched(*f.tensor(0))) return false;
  f.stack[1] = front(*f.tensor(1), f.level);
  f.call();
  return true;
}

// Layer normalization over the last dimensions: weights of each sample come after it.
bool normalize(Frame& f) {
  const Tensor input = *f.tensor(0);
  const auto& shape = std::get<std::vector<int64_t>>(f.stack[1]);
  const auto n = static_cast<int64_t>(shape.size());
  if (n < 1 || input.dim() < n) return false;
  for (int64_t i = 0; i < n; ++i)
    if (input.sizes()[input.dim() - n + i] != shape[static_cast<size_t>(i)]) return false;
  const Tensor weight = f.tensor(2) ? *f.tensor(2) : Tensor(),
               bias = f.tensor(3) ? *f.tensor(3) : Tensor();
  for (const Tensor& t : {weight, bias})
    if (t.defined() && (t.sizes() != IntList(shape.data(), shape.size()) || t.dtype() != input.dtype()))
      return false;
  const bool later = (weight.defined() && f.is_batched(weight)) ||
                     (bias.defined() && f.is_batched(bias));
  const Tensor x = f.with_samples(input);
  const double eps = std::get<double>(f.stack[4]);
  auto [out, mean, rstd] = later ? ops::native_layer_norm(x, shape, {}, {}, eps)
                                 : ops::native_layer_norm(x, shape, weight, bias, eps);
  if (later) {
    if (weight.defined()) out = ops::mul(out, f.aligned(weight, input.dim()));
    if (bias.defined()) out = ops::add(out, f.aligned(bias, input.dim()));
  }
  f.stack.clear();
  for (const Tensor& t : {out, mean, rstd})
    f.stack.push_back(t.defined() ? Value(wrap(t, 0, f.level)) : Value());
  return true;
}

}  // namespace lamina::transforms
