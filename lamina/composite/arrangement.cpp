// Copies in another order or number, triangles and diagonals.
#include <algorithm>

#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"
#include "lamina/ops.h"
#include "lamina/shape/broadcast.h"
#include "lamina/shape/view.h"
#include "lamina/transforms/batched.h"

namespace lamina::composite {

namespace {

Tensor dense_copy(const Tensor& t) { return ops::clone(t, MemoryFormat::Contiguous); }

// As a tensor of at least n dimensions; new ones come first.
Tensor at_least(const Tensor& t, size_t n) {
  Sizes sizes;
  for (size_t i = t.sizes().size(); i < n; ++i) sizes.push_back(1);
  for (const int64_t s : t.sizes()) sizes.push_back(s);
  return ops::reshape(t, sizes);
}

Tensor arange(int64_t n, const Tensor& like) {
  return ops::arange(n, ScalarType::Int64, std::nullopt, like.device(), std::nullopt);
}

// column - row of each element of the last two dimensions.
Tensor diagonal_number(const Tensor& self) {
  const int64_t n = self.dim();
  return ops::sub(arange(self.sizes()[n - 1], self),
                  ops::unsqueeze(arange(self.sizes()[n - 2], self), 1));
}

void check_matrix(const Tensor& self, const char* op) {
  LAMINA_CHECK(self.dim() >= 2, op, ": input tensor must have at least 2 dimensions; got ", self);
}

}  // namespace

Tensor repeat(const Tensor& self, IntList repeats) {
  LAMINA_CHECK(repeats.size() >= self.sizes().size(),
               "repeat: Number of dimensions of repeat dims can not be smaller than number of "
               "dimensions of tensor; got ",
               repeats, " for ", self);
  for (const int64_t r : repeats)
    LAMINA_CHECK(r >= 0, "repeat: Trying to create tensor with negative dimension; got ", repeats);
  const Tensor t = at_least(self, repeats.size());
  Sizes apart, wide, joined;
  for (size_t i = 0; i < repeats.size(); ++i) {
    apart.push_back(1);
    apart.push_back(t.sizes()[i]);
    wide.push_back(repeats[i]);
    wide.push_back(t.sizes()[i]);
    int64_t n;
    LAMINA_CHECK(!__builtin_mul_overflow(repeats[i], t.sizes()[i], &n),
                 "repeat: the result is too large; got ", repeats);
    joined.push_back(n);
  }
  return ops::reshape(dense_copy(ops::expand(ops::reshape(t, apart), wide)), joined);
}

Tensor tile(const Tensor& self, IntList dims) {
  Sizes repeats;
  for (size_t i = dims.size(); i < self.sizes().size(); ++i) repeats.push_back(1);
  for (const int64_t d : dims) repeats.push_back(d);
  return repeat(self, repeats);
}

Tensor repeat_interleave_counts(const Tensor& repeats, std::optional<int64_t> output_size) {
  LAMINA_CHECK(repeats.dim() == 1, "repeat_interleave: repeats must be a vector or a number; got ",
               repeats);
  LAMINA_CHECK_IMPLEMENTED(
      repeats.dtype() == ScalarType::Int32 || repeats.dtype() == ScalarType::Int64,
      "repeat_interleave: repeats has to be Long or Int tensor; got ", repeats);
  LAMINA_CHECK(!repeats.is_meta(), "repeat_interleave: the counts must have values; got ", repeats);
  const Tensor counts =
      ops::contiguous(ops::to(repeats, ScalarType::Int64, std::nullopt, std::nullopt, std::nullopt,
                              false, false, std::nullopt));
  if (transforms::is_batched(counts)) transforms::raise_item("repeating by counts of each sample");
  const auto* n = counts.data_as<int64_t>();
  int64_t total = 0;
  for (int64_t i = 0; i < counts.numel(); ++i) {
    LAMINA_CHECK(n[i] >= 0, "repeat_interleave: repeats can not be negative; got ", n[i]);
    LAMINA_CHECK(!__builtin_add_overflow(total, n[i], &total),
                 "repeat_interleave: the result is too large");
  }
  LAMINA_CHECK(!output_size || *output_size == total,
               "repeat_interleave: allocated size does not match required size; got output_size=",
               output_size.value_or(0), "; expected ", total);
  Tensor out =
      ops::empty({total}, repeats.dtype(), std::nullopt, std::nullopt, std::nullopt, std::nullopt);
  Tensor places = empty_contiguous({total}, ScalarType::Int64, kCpu);
  auto* p = places.data_as<int64_t>();
  for (int64_t i = 0; i < counts.numel(); ++i) p = std::fill_n(p, n[i], i);
  return ops::copy_(out, places, false);
}

Tensor repeat_interleave_tensor(const Tensor& self, const Tensor& repeats,
                                std::optional<int64_t> dim, std::optional<int64_t> output_size) {
  const Tensor t = dim ? self : ops::flatten(self, 0, -1);
  const int64_t d = wrap_dim(dim.value_or(0), std::max<int64_t>(t.dim(), 1), "repeat_interleave");
  Tensor rows = t.dim() == 0 ? ops::unsqueeze(t, 0) : t;
  Tensor counts = repeats;
  if (repeats.dim() == 0 || (repeats.dim() == 1 && repeats.sizes()[0] == 1))
    counts = ops::expand(ops::reshape(repeats, {1}), {rows.sizes()[d]});
  LAMINA_CHECK(counts.dim() == 1 && counts.sizes()[0] == rows.sizes()[d],
               "repeat_interleave: repeats must have the same size as input along dim; got ",
               repeats, " for a size of ", rows.sizes()[d]);
  return ops::index_select(rows, d, repeat_interleave_counts(counts, output_size));
}

Tensor repeat_interleave(const Tensor& self, int64_t repeats, std::optional<int64_t> dim,
                         std::optional<int64_t> output_size) {
  LAMINA_CHECK(repeats >= 0, "repeat_interleave: Repeats must be non-negative; got ", repeats);
  Tensor t = dim ? self : ops::flatten(self, 0, -1);
  if (t.dim() == 0) t = ops::unsqueeze(t, 0);
  const int64_t d = wrap_dim(dim.value_or(0), t.dim(), "repeat_interleave");
  Sizes wide(t.sizes()), joined(t.sizes());
  wide.insert(d + 1, repeats);
  LAMINA_CHECK(!__builtin_mul_overflow(joined[d], repeats, &joined[d]),
               "repeat_interleave: the result is too large; got repeats=", repeats);
  LAMINA_CHECK(!output_size || *output_size == joined[d],
               "repeat_interleave: Invalid output_size; got ", output_size.value_or(0),
               "; expected ", joined[d]);
  return ops::reshape(dense_copy(ops::expand(ops::unsqueeze(t, d + 1), wide)), joined);
}

Tensor flip(const Tensor& self, IntList dims) {
  Tensor t = self;
  uint64_t seen = 0;
  for (const int64_t dim : dims) {
    const int64_t d = wrap_dim(dim, std::max<int64_t>(self.dim(), 1), "flip");
    LAMINA_CHECK(!(seen >> d & 1), "flip: dim ", d, " appears multiple times in the list of dims");
    seen |= uint64_t{1} << d;
    if (self.dim() > 0) t = ops::slice(t, d, std::nullopt, std::nullopt, -1);
  }
  return dense_copy(t);
}
Tensor fliplr(const Tensor& self) {
  LAMINA_CHECK(self.dim() >= 2, "fliplr: Input must be >= 2-d.");
  return flip(self, {1});
}
Tensor flipud(const Tensor& self) {
  LAMINA_CHECK(self.dim() >= 1, "flipud: Input must be >= 1-d.");
  return flip(self, {0});
}

Tensor rot90(const Tensor& self, int64_t k, IntList dims) {
  LAMINA_CHECK(dims.size() == 2,
               "rot90: expected total rotation dims == 2, but got dims = ", dims.size());
  LAMINA_CHECK(self.dim() >= 2,
               "rot90: expected total dims >= 2, but got total dims = ", self.dim());
  const int64_t a = wrap_dim(dims[0], self.dim(), "rot90");
  const int64_t b = wrap_dim(dims[1], self.dim(), "rot90");
  LAMINA_CHECK(a != b, "rot90: expected rotation dims to be different, but got ", dims);
  switch ((k % 4 + 4) % 4) {
    case 1:
      return ops::transpose(flip(self, {b}), a, b);
    case 2:
      return flip(self, {a, b});
    case 3:
      return ops::transpose(flip(self, {a}), a, b);
    default:
      return dense_copy(self);
  }
}

Tensor roll(const Tensor& self, IntList shifts, IntList dims) {
  LAMINA_CHECK(!shifts.empty(), "roll: `shifts` required");
  if (dims.empty() && shifts.size() == 1)
    return ops::reshape(roll(ops::flatten(self, 0, -1), shifts, {0}), self.sizes());
  LAMINA_CHECK(shifts.size() == dims.size(),
               "roll: shifts and dimensions must align; got shifts: ", shifts.size(),
               ", dims:", dims.size());
  LAMINA_CHECK_INDEX(self.dim() > 0, "roll: Dimension specified as ", dims[0],
                     " but tensor has no dimensions");
  Tensor t = self;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t d = wrap_dim(dims[i], self.dim(), "roll");
    const int64_t n = self.sizes()[d];
    const int64_t s = n == 0 ? 0 : (shifts[i] % n + n) % n;
    if (s != 0) {
      const std::vector<Tensor> parts{ops::slice(t, d, n - s, std::nullopt, 1),
                                      ops::slice(t, d, std::nullopt, n - s, 1)};
      t = ops::cat(parts, d);
    }
  }
  return t.is_same(self) ? dense_copy(self) : t;
}

Tensor tril(const Tensor& self, int64_t diagonal) {
  check_matrix(self, "tril");
  return ops::masked_fill(self, ops::gt(diagonal_number(self), diagonal), Scalar(int64_t{0}));
}
Tensor triu(const Tensor& self, int64_t diagonal) {
  check_matrix(self, "triu");
  return ops::masked_fill(self, ops::lt(diagonal_number(self), diagonal), Scalar(int64_t{0}));
}

Tensor diag_embed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  LAMINA_CHECK(self.dim() >= 1, "diag_embed: expected at least one dimension; got ", self);
  const int64_t n = self.dim() + 1;
  const int64_t a = wrap_dim(dim1, n, "diag_embed"), b = wrap_dim(dim2, n, "diag_embed");
  LAMINA_CHECK(a != b, "diag_embed: diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  const Dim apart = offset < 0 ? Dim(0) - Dim(offset) : Dim(offset);
  const int64_t size = Dim(self.sizes()[self.dim() - 1]) + apart;
  Sizes sizes;
  for (int64_t i = 0, from = 0; i < n; ++i)
    sizes.push_back(i == a || i == b ? size : self.sizes()[from++]);
  return ops::diagonal_backward(self, sizes, offset, a, b);
}
Tensor diag(const Tensor& self, int64_t diagonal) {
  LAMINA_CHECK(self.dim() == 1 || self.dim() == 2, "diag: Supports 1D or 2D tensors. Got ",
               self.dim(), "D");
  return self.dim() == 1 ? diag_embed(self, diagonal, 0, 1)
                         : dense_copy(ops::diagonal(self, diagonal, 0, 1));
}
Tensor diagflat(const Tensor& self, int64_t offset) {
  return diag_embed(ops::flatten(self, 0, -1), offset, 0, 1);
}
Tensor trace(const Tensor& self) {
  LAMINA_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim ", self.dim());
  return ops::sum(ops::diagonal(self, 0, 0, 1));
}

Tensor diff(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend,
            const Tensor& append) {
  LAMINA_CHECK(self.dim() > 0, "diff: diff expects input to be at least one-dimensional");
  LAMINA_CHECK(n >= 0, "diff: order must be non-negative but got ", n);
  const int64_t d = wrap_dim(dim, self.dim(), "diff");
  std::vector<Tensor> parts;
  if (prepend.defined()) parts.push_back(prepend);
  parts.push_back(self);
  if (append.defined()) parts.push_back(append);
  if (n == 0) return dense_copy(self);
  Tensor t = parts.size() == 1 ? self : ops::cat(parts, d);
  for (int64_t k = 0; k < n && t.sizes()[d] > 0; ++k) {
    const Tensor later = ops::slice(t, d, 1, std::nullopt, 1);
    const Tensor earlier = ops::slice(t, d, 0, t.sizes()[d] - 1, 1);
    t = t.dtype() == ScalarType::Bool ? ops::logical_xor(later, earlier) : ops::sub(later, earlier);
  }
  return t;
}

Tensor masked_scatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  const Sizes sizes = broadcast_sizes(self.sizes(), mask.sizes(), "masked_scatter");
  return ops::masked_scatter_(dense_copy(ops::expand(self, sizes)), mask, source);
}

Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return ops::mul(self, other);
  LAMINA_CHECK(self.sizes()[self.dim() - 1] == other.sizes()[other.dim() - 1],
               "inner: the last dimensions must match but got shapes ", self, " and ", other);
  if (self.dim() == 1 && other.dim() == 1) return ops::dot(self, other);
  Sizes sizes;
  for (int64_t i = 0; i + 1 < self.dim(); ++i) sizes.push_back(self.sizes()[i]);
  for (int64_t i = 0; i + 1 < other.dim(); ++i) sizes.push_back(other.sizes()[i]);
  const int64_t k = self.sizes()[self.dim() - 1];
  const auto rows = [k](const Tensor& t) {
    int64_t n = 1;
    for (int64_t i = 0; i + 1 < t.dim(); ++i) n *= t.sizes()[i];
    return ops::reshape(t, {n, k});
  };
  return ops::reshape(ops::mm(rows(self), ops::transpose(rows(other), 0, 1)), sizes);
}

namespace {
std::vector<Tensor> each(TensorList tensors, Tensor (*f)(const Tensor&), const char* op) {
  LAMINA_CHECK(!tensors.empty(), op, ": expects a non-empty TensorList");
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(f(t));
  return out;
}
}  // namespace

Tensor hstack(TensorList tensors) {
  const std::vector<Tensor> list =
      each(tensors, [](const Tensor& t) { return at_least(t, 1); }, "hstack");
  return ops::cat(list, list[0].dim() == 1 ? 0 : 1);
}
Tensor vstack(TensorList tensors) {
  return ops::cat(each(tensors, [](const Tensor& t) { return at_least(t, 2); }, "vstack"), 0);
}
Tensor dstack(TensorList tensors) {
  const auto deep = [](const Tensor& t) {
    const Tensor flat = at_least(t, 2);
    return flat.dim() == 2 ? ops::unsqueeze(flat, 2) : flat;
  };
  return ops::cat(each(tensors, deep, "dstack"), 2);
}
Tensor column_stack(TensorList tensors) {
  const auto column = [](const Tensor& t) {
    return t.dim() <= 1 ? ops::reshape(t, {t.numel(), 1}) : t;
  };
  return ops::cat(each(tensors, column, "column_stack"), 1);
}

Tensor one_hot(const Tensor& self, int64_t num_classes) {
  LAMINA_CHECK(self.dtype() == ScalarType::Int64,
               "one_hot: one_hot is only applicable to index tensor of type LongTensor; got ",
               self);
  if (num_classes < 0 || !self.is_meta()) {
    LAMINA_CHECK(self.numel() > 0 || num_classes > 0,
                 "one_hot: Can not infer total number of classes from empty tensor.");
    if (self.numel() > 0) {
      LAMINA_CHECK(scalar_of(ops::min(self)).to_int() >= 0,
                   "one_hot: Class values must be non-negative.");
      const int64_t most = scalar_of(ops::max(self)).to_int();
      LAMINA_CHECK(num_classes < 0 || most < num_classes,
                   "one_hot: Class values must be smaller than num_classes; got ", most);
      if (num_classes < 0) num_classes = most + 1;
    }
  }
  Sizes sizes(self.sizes());
  sizes.push_back(num_classes);
  const Tensor zeros =
      ops::zeros(sizes, ScalarType::Int64, std::nullopt, self.device(), std::nullopt);
  return ops::scatter(zeros, -1, ops::unsqueeze(self, -1), Scalar(int64_t{1}));
}

}  // namespace lamina::composite
