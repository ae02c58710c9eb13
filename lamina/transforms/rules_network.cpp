// Rules of the operators of networks: images, convolutions, embeddings.
#include <algorithm>

#include "lamina/ops/_range.h"
#include "lamina/ops/_to_dtype.h"
#include "lamina/ops/add.h"
#include "lamina/ops/convolution.h"
#include "lamina/ops/detach.h"
#include "lamina/ops/eq.h"
#include "lamina/ops/flatten.h"
#include "lamina/ops/index.h"
#include "lamina/ops/lt.h"
#include "lamina/ops/masked_fill.h"
#include "lamina/ops/permute.h"
#include "lamina/ops/reshape.h"
#include "lamina/ops/sum.h"
#include "lamina/ops/unsqueeze.h"
#include "lamina/ops/where.h"
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

// Rows of one table, for any number of indices; rows of a table of each sample by two indices.
bool embed(Frame& f) {
  const Tensor weight = *f.tensor(0), indices = *f.tensor(1);
  if (!f.is_batched(weight)) {
    f.stack[1] = front(indices, f.level);
    f.call();
    return true;
  }
  if (weight.dim() != 2 || std::get<bool>(f.stack[3]) || !is_integral(indices.dtype()))
    return false;
  const int64_t rows = weight.sizes()[0], padding = std::get<int64_t>(f.stack[2]);
  const Tensor at = ops::_to_dtype(f.aligned(indices, indices.dim()), ScalarType::Int64);
  Sizes sizes{f.size};
  for (int64_t i = 0; i < indices.dim(); ++i) sizes.push_back(1);
  const Tensor sample = ops::reshape(
      ops::_range(Scalar(0), Scalar(1), f.size, ScalarType::Int64, weight.device()), sizes);
  // index() counts negative ones from the end, a table has no such rows: they are made too large.
  const Tensor checked = ops::masked_fill(at, ops::lt(at, Scalar(0)), Scalar(rows));
  Tensor out = ops::index(front(weight, f.level), std::vector<Tensor>{sample, checked});
  if (padding >= 0)  // its row is read but has no gradient
    out = ops::where(ops::unsqueeze(ops::eq(at, Scalar(padding)), -1), ops::detach(out), out);
  f.give(out);
  return true;
}

// Gradients of a convolution for batched gradients of its result.
bool convolve_gradient(Frame& f) {
  std::string_view name = f.op.info().name;
  name.remove_prefix(6);
  const Tensor grad = *f.tensor(0), other = *f.tensor(1);
  const int64_t rank = grad.dim();
  if (rank < 3 || f.size == 0 || grad.numel() == 0 || other.numel() == 0) return false;
  if (name == "_convolution_bias_grad") {
    if (!f.is_batched(grad)) return false;
    Sizes dims{1};
    for (int64_t i = 3; i <= rank; ++i) dims.push_back(i);
    f.give(ops::sum(front(grad, f.level), dims, false, std::nullopt));
    return true;
  }
  auto& size = std::get<std::vector<int64_t>>(f.stack[2]);
  if (static_cast<int64_t>(size.size()) != rank || other.dim() != rank) return false;
  if (name == "_convolution_input_grad") {
    if (f.is_batched(other)) return false;
    const int64_t items = grad.sizes()[0];
    f.stack[0] = folded(front(grad, f.level));
    size[0] *= f.size;
    f.op.call_boxed(f.stack);
    f.give(unfolded(std::get<Tensor>(f.stack[0]), f.size, items));
    return true;
  }
  // Channels of the samples side by side, each with groups of its own.
  Sizes order{1, 0};
  for (int64_t i = 2; i <= rank; ++i) order.push_back(i);
  const auto beside = [&](const Tensor& t) {
    return ops::flatten(ops::permute(f.with_samples(t), order), 1, 2);
  };
  f.stack[0] = beside(grad);
  f.stack[1] = beside(other);
  const int64_t rows = size[0];
  size[0] *= f.size;
  f.stack[8] = std::get<int64_t>(f.stack[8]) * f.size;
  f.op.call_boxed(f.stack);
  f.give(unfolded(std::get<Tensor>(f.stack[0]), f.size, rows));
  return true;
}

}  // namespace lamina::transforms
