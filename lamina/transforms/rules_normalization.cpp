// Rules of normalizations and of the likelihood of classes.
#include "lamina/ops/_nll_loss.h"
#include "lamina/ops/add.h"
#include "lamina/ops/div.h"
#include "lamina/ops/eq.h"
#include "lamina/ops/flatten.h"
#include "lamina/ops/index_select.h"
#include "lamina/ops/masked_fill.h"
#include "lamina/ops/mul.h"
#include "lamina/ops/ones_like.h"
#include "lamina/ops/permute.h"
#include "lamina/ops/reshape.h"
#include "lamina/ops/sum.h"
#include "lamina/transforms/rules.h"

namespace lamina::transforms {

namespace {

Tensor argument(const Frame& f, size_t i) { return f.tensor(i) ? *f.tensor(i) : Tensor(); }

// (size, channels) or (channels) in the form of an input (size, items, channels, ...).
Tensor by_channel(const Frame& f, const Tensor& t, int64_t rank) {
  const bool own = f.is_batched(t);
  Sizes sizes{own ? f.size : 1, 1, t.numel()};
  for (int64_t i = 2; i < rank; ++i) sizes.push_back(1);
  return ops::reshape(own ? front(t, f.level) : t, sizes);
}

Tensor split_first(const Tensor& t, int64_t size) {
  Sizes sizes{size, t.sizes()[0] / size};
  for (int64_t i = 1; i < t.dim(); ++i) sizes.push_back(t.sizes()[i]);
  return ops::reshape(t, sizes);
}

bool is_like(const Tensor& weight, const Tensor& input) {
  return !weight.defined() || weight.dtype() == input.dtype();
}

void give_all(Frame& f, std::initializer_list<Tensor> values) {
  f.stack.clear();
  for (const Tensor& t : values)
    f.stack.push_back(t.defined() ? Value(wrap(t, 0, f.level)) : Value());
}

}  // namespace

// Over the last dimensions, native_layer_norm and _fused_rms_norm: weights of each sample come
// after it.
bool normalize(Frame& f) {
  const Tensor input = *f.tensor(0);
  const auto& shape = std::get<std::vector<int64_t>>(f.stack[1]);
  const auto n = static_cast<int64_t>(shape.size());
  if (n < 1 || input.dim() < n) return false;
  for (int64_t i = 0; i < n; ++i)
    if (input.sizes()[input.dim() - n + i] != shape[static_cast<size_t>(i)]) return false;
  const Tensor weight = argument(f, 2);
  const Tensor bias = f.parameters.find("bias") == 3 ? argument(f, 3) : Tensor();
  bool later = false;
  for (const Tensor& t : {weight, bias}) {
    if (!t.defined()) continue;
    if (t.sizes() != IntList(shape.data(), shape.size()) || !is_like(t, input)) return false;
    later |= f.is_batched(t);
  }
  f.stack[0] = f.with_samples(input);
  if (later) {
    f.stack[2] = Value();
    if (bias.defined()) f.stack[3] = Value();
  }
  f.op.call_boxed(f.stack);
  auto* out = std::get_if<Tensor>(&f.stack[0]);
  if (later && weight.defined()) *out = ops::mul(*out, f.aligned(weight, input.dim()));
  if (later && bias.defined()) *out = ops::add(*out, f.aligned(bias, input.dim()));
  for (Value& v : f.stack)
    if (auto* t = std::get_if<Tensor>(&v); t && t->defined()) *t = wrap(*t, 0, f.level);
  return true;
}

// Samples are more items.
bool normalize_groups(Frame& f) {
  const Tensor input = *f.tensor(0), weight = argument(f, 1), bias = argument(f, 2);
  if (f.writes() || input.dim() < 2 || input.numel() == 0 || f.size == 0) return false;
  if (!is_like(weight, input) || !is_like(bias, input)) return false;
  for (const Tensor& t : {weight, bias})
    if (t.defined() && t.numel() != input.sizes()[1]) return false;
  const bool later =
      (weight.defined() && f.is_batched(weight)) || (bias.defined() && f.is_batched(bias));
  const int64_t rank = input.dim(), items = std::get<int64_t>(f.stack[3]);
  if (items != input.sizes()[0]) return false;
  f.stack[0] = ops::flatten(f.with_samples(input), 0, 1);
  if (later) f.stack[1] = f.stack[2] = Value();
  f.stack[3] = items * f.size;
  f.op.call_boxed(f.stack);
  Tensor out = split_first(std::get<Tensor>(f.stack[0]), f.size);
  if (later && weight.defined()) out = ops::mul(out, by_channel(f, weight, rank));
  if (later && bias.defined()) out = ops::add(out, by_channel(f, bias, rank));
  const Tensor mean = split_first(std::get<Tensor>(f.stack[1]), f.size),
               rstd = split_first(std::get<Tensor>(f.stack[2]), f.size);
  give_all(f, {out, mean, rstd});
  return true;
}

// Samples are more channels. Running statistics are written while training: then each sample needs
// its own.
bool normalize_batch(Frame& f) {
  const Tensor input = *f.tensor(0), weight = argument(f, 1), bias = argument(f, 2);
  const bool training = std::get<bool>(f.stack[5]);
  if (f.writes() || input.dim() < 2 || input.numel() == 0 || f.size == 0) return false;
  const int64_t rank = input.dim(), channels = input.sizes()[1];
  for (const Tensor& t : {weight, bias})
    if (t.defined() && (t.numel() != channels || !is_like(t, input))) return false;
  for (const size_t i : {size_t{3}, size_t{4}}) {
    const Tensor t = argument(f, i);
    if (!t.defined()) continue;
    if (t.dim() != 1 || t.numel() != channels) return false;
    if (training && !f.is_batched(t))
      raise(
          ErrorKind::Runtime,
          "batch_norm: inside vmap, samples cannot update running statistics that they share; use "
          "statistics of the batch only (torch.func.replace_all_batch_norm_modules_), evaluation "
          "mode, or buffers with samples");
    Tensor value = f.is_batched(t) ? front(t, f.level) : f.with_samples(t);
    if (training && !value.is_contiguous()) return false;
    f.stack[i] = ops::flatten(value, 0, 1);
  }
  Sizes order{1, 0};
  for (int64_t i = 2; i <= rank; ++i) order.push_back(i);
  f.stack[0] = ops::flatten(ops::permute(f.with_samples(input), order), 1, 2);
  f.stack[1] = f.stack[2] = Value();
  f.op.call_boxed(f.stack);
  Tensor out = std::get<Tensor>(f.stack[0]);  // (items, size * channels, ...)
  Sizes sizes{out.sizes()[0], f.size, channels};
  for (int64_t i = 2; i < rank; ++i) sizes.push_back(out.sizes()[i]);
  out = ops::permute(ops::reshape(out, sizes), order);
  if (weight.defined()) out = ops::mul(out, by_channel(f, weight, rank));
  if (bias.defined()) out = ops::add(out, by_channel(f, bias, rank));
  const auto statistic = [&](size_t i) {
    const Tensor& t = std::get<Tensor>(f.stack[i]);
    return ops::reshape(t, Sizes{f.size, t.numel() / f.size});
  };
  give_all(f, {out, statistic(1), statistic(2)});
  return true;
}

// The likelihoods of all items at once, then the sum or mean of each sample.
bool likelihood(Frame& f) {
  const Tensor self = *f.tensor(0), target = *f.tensor(1), weight = argument(f, 2);
  const int64_t reduction = std::get<int64_t>(f.stack[3]), ignored = std::get<int64_t>(f.stack[4]);
  if (weight.defined() && (f.is_batched(weight) || !is_like(weight, self))) return false;
  if (self.dim() < 1 || target.dim() != std::max<int64_t>(self.dim() - 1, 0) || self.numel() == 0 ||
      f.size == 0 || reduction < 0 || reduction > 2)
    return false;
  for (int64_t i = 0; i < target.dim(); ++i)
    if (target.sizes()[i] != self.sizes()[i == 0 ? 0 : i + 1]) return false;
  const bool items = self.dim() > 1;
  const Tensor x = f.with_samples(self), t = f.with_samples(target);
  auto [each, none] = ops::_nll_loss(items ? ops::flatten(x, 0, 1) : x,
                                     items ? ops::flatten(t, 0, 1) : t, weight, 0, ignored);
  if (items) each = split_first(each, f.size);
  const Tensor rows = ops::reshape(each, Sizes{f.size, each.numel() / f.size});
  const Tensor classes = ops::reshape(t, rows.sizes());
  const Tensor skipped = ops::eq(classes, Scalar(ignored));
  Tensor counted;
  if (weight.defined()) {
    const Tensor safe = ops::reshape(ops::masked_fill(classes, skipped, Scalar(0)), Sizes{-1});
    counted = ops::reshape(ops::index_select(weight, 0, safe), rows.sizes());
  } else {
    counted =
        ops::ones_like(rows, std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  }
  const Tensor total =
      ops::sum(ops::masked_fill(counted, skipped, Scalar(0)), Sizes{1}, false, std::nullopt);
  Tensor out = each;
  if (reduction != 0) out = ops::sum(rows, Sizes{1}, false, std::nullopt);
  if (reduction == 1) out = ops::div(out, total);
  give_all(f, {out, total});
  return true;
}

}  // namespace lamina::transforms
