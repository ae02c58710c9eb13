// Derivatives of views and of indexing.
#include <algorithm>

#include "lamina/autograd/formulas.h"
#include "lamina/shape/broadcast.h"

namespace lamina::autograd::formulas {

Sizes negated(IntList list) {
  Sizes out{std::span<const int64_t>(list)};
  for (int64_t& v : out) v = -v;
  return out;
}

Sizes inverse_permutation(IntList dims) {
  Sizes out(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    out[wrap_dim(dims[i], static_cast<int64_t>(dims.size()), "permute")] = static_cast<int64_t>(i);
  return out;
}

namespace {

Tensor int_range(int64_t n, int64_t step) {
  return ops::arange(Scalar(0), Scalar(n), Scalar(1), ScalarType::Int64) * Scalar(step);
}

// Storage offsets, relative to `base`, of every element of a window.
Tensor offsets_of(IntList sizes, IntList strides, int64_t base) {
  Tensor at = ops::full({}, Scalar(base), ScalarType::Int64);
  for (size_t i = 0; i < sizes.size(); ++i) {
    Sizes shape(sizes.size(), 1);
    shape[i] = sizes[i];
    at = at + ops::view(int_range(sizes[i], strides[i]), shape);
  }
  return ops::contiguous(ops::expand(at, sizes));
}

struct Range {
  int64_t low, high;
};
Range range_of(IntList sizes, IntList strides, int64_t offset) {
  Range r{offset, offset};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t reach = (sizes[i] - 1) * strides[i];
    (reach < 0 ? r.low : r.high) += reach;
  }
  return r;
}

}  // namespace

namespace {

// Whether no two indices of a window can share an address: each dimension steps over everything
// that the smaller steps reach. Sufficient, and true of nearly every window in use.
bool plainly_distinct(IntList sizes, IntList strides) {
  std::vector<std::pair<int64_t, int64_t>> steps;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1) steps.emplace_back(std::abs(strides[i]), sizes[i]);
  std::sort(steps.begin(), steps.end());
  int64_t reach = 0;
  for (const auto& [step, size] : steps) {
    if (step <= reach) return false;
    reach += step * (size - 1);
  }
  return true;
}

}  // namespace

Tensor as_strided_grad(const Tensor& grad, const Geometry& self, IntList size, IntList stride,
                       std::optional<int64_t> storage_offset) {
  const int64_t offset = storage_offset.value_or(self.offset);
  int64_t numel = 1;
  for (const int64_t n : self.sizes) numel *= n;
  if (numel == 0 || grad.numel() == 0) return zeros_of(grad, self.sizes);
  // A buffer that stands for the storage: gradients are added where the window lies, then read
  // where self lies.
  const Range a = range_of(size, stride, offset),
              b = range_of(self.sizes, self.strides, self.offset);
  const int64_t low = std::min(a.low, b.low), n = std::max(a.high, b.high) - low + 1;
  Tensor buffer = zeros_of(grad, {n});
  if (plainly_distinct(size, stride))
    ops::copy_(ops::as_strided(buffer, size, stride, offset - low), grad);
  else
    buffer = ops::index_add(buffer, 0, ops::reshape(offsets_of(size, stride, offset - low), {-1}),
                            ops::reshape(grad, {-1}));
  if (plainly_distinct(self.sizes, self.strides))
    return ops::as_strided(buffer, self.sizes, self.strides, self.offset - low);
  // Elements of self that share an address share its gradient.
  const Tensor own = ops::reshape(offsets_of(self.sizes, self.strides, self.offset - low), {-1});
  const Tensor ones = ops::ones({own.numel()}, grad.dtype());
  const Tensor count = ops::index_add(zeros_of(grad, {n}), 0, own, ones);
  buffer = buffer / ops::clamp_min(ops::real(count), Scalar(1));
  return ops::reshape(ops::index_select(buffer, 0, own), self.sizes);
}

Tensor joined(std::span<const Tensor> grads, int64_t dim) { return ops::cat(grads, dim); }
Tensor stacked(std::span<const Tensor> grads, int64_t dim) { return ops::stack(grads, dim); }

Tensor unfold_grad(const Tensor& grad, IntList sizes, int64_t dimension, int64_t size,
                   int64_t step) {
  if (sizes.empty()) return ops::reshape(grad, sizes);
  const int64_t d = wrap_dim(dimension, static_cast<int64_t>(sizes.size()), "unfold");
  const int64_t windows = grad.size(d);
  const Tensor at =
      ops::reshape(ops::unsqueeze(int_range(windows, step), 1) + int_range(size, 1), {-1});
  Sizes flat{std::span<const int64_t>(sizes)};
  flat[d] = windows * size;
  const Tensor g = ops::reshape(ops::movedim(grad, -1, d + 1), flat);
  return ops::index_add(zeros_of(grad, sizes), d, at, g);
}

std::vector<Tensor> cat_grad(const Tensor& grad, const std::vector<Sizes>& sizes, int64_t dim) {
  std::vector<Tensor> out;
  const int64_t d = wrap_dim(dim, grad.dim(), "cat");
  int64_t at = 0;
  for (const Sizes& s : sizes) {
    if (s.size() == 1 && s[0] == 0 && grad.dim() != 1) {
      out.push_back(zeros_of(grad, s));
      continue;
    }
    out.push_back(ops::slice(grad, d, at, at + s[d], 1));
    at += s[d];
  }
  return out;
}

Tensor scatter_src_grad(const Tensor& grad, IntList src_sizes) {
  Tensor g = grad;
  for (int64_t d = 0; d < g.dim(); ++d) {
    if (g.sizes()[d] == src_sizes[d]) continue;
    Sizes wider{std::span<const int64_t>(g.sizes())};
    wider[d] = src_sizes[d];
    g = ops::slice_backward(g, wider, d, 0, g.sizes()[d], 1);
  }
  return g;
}

Tensor masked_select_grad(const Tensor& grad, IntList sizes, const Tensor& mask) {
  const Sizes full = broadcast_sizes(sizes, mask.sizes(), "masked_select");
  const Tensor spread = ops::masked_scatter_(zeros_of(grad, full), mask, grad);
  return ops::sum_to_size(spread, sizes);
}

Tensor masked_scatter_source_grad(const Tensor& grad, const Tensor& mask, IntList source_sizes) {
  const Tensor taken = ops::masked_select(grad, mask);
  const int64_t n = numel_of(source_sizes);
  return ops::reshape(ops::slice_backward(taken, {n}, 0, 0, taken.numel(), 1), source_sizes);
}

Tensor index_grad_put(const Tensor& grad, IntList sizes, TensorList indices) {
  return ops::index_put_(zeros_of(grad, sizes), indices, grad, true);
}
Tensor zero_at(const Tensor& grad, TensorList indices) {
  return ops::index_put(grad, indices, zeros_of(grad, {}), false);
}

Tensor copy_grad(const Tensor& grad, IntList src_sizes) {
  if (static_cast<int64_t>(src_sizes.size()) > grad.dim()) return ops::reshape(grad, src_sizes);
  return ops::sum_to_size(grad, src_sizes);
}

}  // namespace lamina::autograd::formulas
