// View operators: sizes, strides and offset of a window on the same storage.
#include <algorithm>

#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"
#include "lamina/shape/view.h"

namespace lamina::kernels {

namespace {

Sizes copy(IntList v) { return Sizes(std::span<const int64_t>(v)); }

Tensor with_window(const Tensor& self, const Sizes& sizes, const Sizes& strides, int64_t offset) {
  return alias_window(self, sizes, strides, offset);
}

// A view of self whose sizes and strides are written in place: the commonest views need no lists.
struct View {
  View(const Tensor& self, int64_t ndim)
      : tensor(alias_without_window(self)),
        sizes(tensor.impl()->begin_window(ndim)),
        strides(sizes + ndim) {}
  Tensor finish(int64_t offset) {
    tensor.impl()->finish_window(offset);
    return std::move(tensor);
  }

  Tensor tensor;
  int64_t* sizes;
  int64_t* strides;
};

Tensor retyped(const Tensor& self, ScalarType dtype, const Sizes& sizes, const Sizes& strides,
               int64_t offset) {
  TensorImpl* impl = TensorImpl::make(dtype, self.device(), self.keys(),
                                      IntrusivePtr<Storage>::share(self.storage()));
  Tensor out = Tensor::adopt(impl);
  impl->set_window(sizes, strides, offset);
  impl->set_version_counter(self.impl()->version_counter());
  impl->set_view(true);
  return out;
}

}  // namespace

Tensor view(const Tensor& self, IntList size) {
  const Sizes sizes = infer_size(size, self.numel(), "view");
  if (self.is_contiguous() && self.numel() > 0 && self.dim() > 0 && self.strides().back() == 1) {
    View view(self, static_cast<int64_t>(sizes.size()));
    int64_t step = 1;
    for (size_t i = sizes.size(); i-- > 0;) {
      view.sizes[i] = sizes[i];
      view.strides[i] = step;
      step *= std::max<int64_t>(sizes[i], 1);
    }
    return view.finish(self.storage_offset());
  }
  const auto strides = view_strides(self.sizes(), self.strides(), sizes);
  LAMINA_CHECK(strides,
               "view: view size is not compatible with input tensor's size and stride (at least "
               "one dimension "
               "spans across two contiguous subspaces); got sizes ",
               self.sizes(), ", strides ", self.strides(), " and view size ", sizes,
               ". Use .reshape(...) instead.");
  return with_window(self, sizes, *strides, self.storage_offset());
}

Tensor reshape_alias(const Tensor& self, IntList size, IntList stride) {
  check_window(self, size, stride, self.storage_offset(), self.dtype(), "_reshape_alias");
  return alias_window(self, size, stride, self.storage_offset());
}

Tensor view_dtype(const Tensor& self, ScalarType dtype) {
  LAMINA_CHECK(!self.keys().has(DispatchKey::Conjugate) && !self.keys().has(DispatchKey::Negative),
               "view: a tensor with a pending conjugation or negation cannot be read as another "
               "type; call resolve_conj() "
               "or resolve_neg() first");
  const auto from = static_cast<int64_t>(item_size(self.dtype())),
             to = static_cast<int64_t>(item_size(dtype));
  Sizes sizes = copy(self.sizes()), strides = copy(self.strides());
  int64_t offset = self.storage_offset();
  if (from != to) {
    LAMINA_CHECK(self.dim() > 0, "view: self.dim() cannot be 0 to view ", legacy_name(self.dtype()),
                 " as ", legacy_name(dtype), " (different element sizes)");
    const int64_t last = self.dim() - 1;
    LAMINA_CHECK(strides[last] == 1 || sizes[last] == 1, "view: self.stride(-1) must be 1 to view ",
                 legacy_name(self.dtype()), " as ", legacy_name(dtype),
                 " (different element sizes), but got ", strides[last]);
    if (from > to) {
      const int64_t ratio = from / to;
      for (int64_t i = 0; i < last; ++i) strides[i] = Dim(strides[i]) * Dim(ratio);
      sizes[last] = Dim(sizes[last]) * Dim(ratio);
      offset = Dim(offset) * Dim(ratio);
    } else {
      const int64_t ratio = to / from;
      LAMINA_CHECK(sizes[last] % ratio == 0, "view: self.size(-1) must be divisible by ", ratio,
                   " to view ", legacy_name(self.dtype()), " as ", legacy_name(dtype),
                   " (different element sizes), but got ", sizes[last]);
      LAMINA_CHECK(offset % ratio == 0, "view: self.storage_offset() must be divisible by ", ratio,
                   ", but got ", offset);
      for (int64_t i = 0; i < last; ++i) {
        LAMINA_CHECK(strides[i] % ratio == 0, "view: self.stride(", i, ") must be divisible by ",
                     ratio, ", but got ", strides[i]);
        strides[i] /= ratio;
      }
      sizes[last] /= ratio;
      offset /= ratio;
    }
    strides[last] = 1;
  }
  return retyped(self, dtype, sizes, strides, offset);
}

Tensor as_strided(const Tensor& self, IntList size, IntList stride,
                  std::optional<int64_t> storage_offset) {
  const int64_t offset = storage_offset.value_or(self.storage_offset());
  check_window(self, size, stride, offset, self.dtype(), "as_strided");
  return alias_window(self, size, stride, offset);
}

Tensor expand(const Tensor& self, IntList size, bool) {
  const int64_t n = static_cast<int64_t>(size.size()), have = self.dim();
  LAMINA_CHECK(n >= have, "expand: the number of sizes provided (", n,
               ") must be greater or equal to the number of dimensions in the tensor (", have,
               "); got ", size, " and ", self);
  Sizes sizes = copy(size), strides(size.size());
  for (int64_t i = n - 1; i >= 0; --i) {
    const int64_t d = have - (n - i);
    if (d < 0) {
      LAMINA_CHECK(sizes[i] >= 0, "expand: The expanded size of the tensor (", sizes[i],
                   ") isn't allowed in a leading, non-existing dimension ", i);
      strides[i] = 0;
      continue;
    }
    if (sizes[i] == -1) sizes[i] = self.sizes()[d];
    if (self.sizes()[d] == sizes[i]) {
      strides[i] = self.strides()[d];
      continue;
    }
    LAMINA_CHECK(self.sizes()[d] == 1 && sizes[i] >= 0, "expand: The expanded size of the tensor (",
                 sizes[i], ") must match the existing size (", self.sizes()[d],
                 ") at non-singleton dimension ", i, ".  Target sizes: ", size,
                 ".  Tensor sizes: ", self.sizes());
    strides[i] = 0;
  }
  return with_window(self, sizes, strides, self.storage_offset());
}

Tensor permute(const Tensor& self, IntList dims) {
  LAMINA_CHECK(static_cast<int64_t>(dims.size()) == self.dim(),
               "permute: permute(sparse_coo): number of dimensions in the tensor input does not "
               "match the length of the "
               "desired ordering of dimensions i.e. input.dim() = ",
               self.dim(), " is not equal to len(dims) = ", dims.size());
  Sizes sizes, strides;
  uint64_t seen = 0;
  for (const int64_t d : dims) {
    const int64_t w = wrap_dim(d, self.dim(), "permute");
    LAMINA_CHECK(!(seen >> w & 1), "permute: duplicate dims are not allowed; got ", dims);
    seen |= uint64_t{1} << w;
    sizes.push_back(self.sizes()[w]);
    strides.push_back(self.strides()[w]);
  }
  return with_window(self, sizes, strides, self.storage_offset());
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  const int64_t n = self.dim();
  const int64_t a = wrap_dim(dim0, n, "transpose"), b = wrap_dim(dim1, n, "transpose");
  const int64_t *sizes = self.sizes().data(), *strides = self.strides().data();
  View view(self, n);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t from = i == a ? b : i == b ? a : i;
    view.sizes[i] = sizes[from];
    view.strides[i] = strides[from];
  }
  return view.finish(self.storage_offset());
}

Tensor t(const Tensor& self) {
  LAMINA_CHECK(self.dim() <= 2, "t: t() expects a tensor with <= 2 dimensions, but self is ",
               self.dim(), "D");
  return transpose(self, 0, self.dim() < 2 ? 0 : 1);
}

namespace {
template <class Keep>
Tensor squeeze_where(const Tensor& self, Keep&& drop) {
  Sizes sizes, strides;
  for (int64_t i = 0; i < self.dim(); ++i) {
    if (self.sizes()[i] == 1 && drop(i)) continue;
    sizes.push_back(self.sizes()[i]);
    strides.push_back(self.strides()[i]);
  }
  return with_window(self, sizes, strides, self.storage_offset());
}
}  // namespace

Tensor squeeze(const Tensor& self) {
  return squeeze_where(self, [](int64_t) { return true; });
}
Tensor squeeze_dim(const Tensor& self, int64_t dim) {
  const int64_t d = wrap_dim(dim, self.dim(), "squeeze");
  return squeeze_where(self, [d](int64_t i) { return i == d; });
}
Tensor squeeze_dims(const Tensor& self, IntList dim) {
  uint64_t mask = 0;
  for (const int64_t d : dim) {
    const uint64_t bit = uint64_t{1} << wrap_dim(d, self.dim(), "squeeze");
    LAMINA_CHECK(!(mask & bit), "squeeze: dim ", d,
                 " appears multiple times in the list of dims; got ", dim);
    mask |= bit;
  }
  return squeeze_where(self, [mask](int64_t i) { return mask >> i & 1; });
}

Tensor unsqueeze(const Tensor& self, int64_t dim) {
  const int64_t n = self.dim(), d = wrap_dim(dim, n + 1, "unsqueeze");
  const int64_t *sizes = self.sizes().data(), *strides = self.strides().data();
  View view(self, n + 1);
  for (int64_t i = 0; i <= n; ++i) {
    const int64_t from = i < d ? i : i - 1;
    view.sizes[i] = i == d ? 1 : sizes[from];
    view.strides[i] = i != d ? strides[from] : d == n ? 1 : sizes[d] * strides[d];
  }
  return view.finish(self.storage_offset());
}

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  LAMINA_CHECK_INDEX(self.dim() > 0, "select: select() cannot be applied to a 0-dim tensor.");
  const int64_t ndim = self.dim(), d = wrap_dim(dim, ndim, "select");
  const int64_t *sizes = self.sizes().data(), *strides = self.strides().data();
  const int64_t n = sizes[d];
  LAMINA_CHECK_INDEX(index >= -n && index < n, "select: index ", index,
                     " is out of bounds for dimension ", d, " with size ", n);
  const int64_t at = index < 0 ? index + n : index;
  View view(self, ndim - 1);
  for (int64_t i = 0; i + 1 < ndim; ++i) {
    const int64_t from = i < d ? i : i + 1;
    view.sizes[i] = sizes[from];
    view.strides[i] = strides[from];
  }
  return view.finish(self.storage_offset() + at * strides[d]);
}

Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step) {
  LAMINA_CHECK_INDEX(self.dim() > 0, "slice: slice() cannot be applied to a 0-dim tensor.");
  const int64_t n = self.dim(), d = wrap_dim(dim, n, "slice");
  const int64_t *sizes = self.sizes().data(), *strides = self.strides().data();
  const SliceRange r = slice_range(sizes[d], start, end, step);
  View view(self, n);
  for (int64_t i = 0; i < n; ++i) {
    view.sizes[i] = sizes[i];
    view.strides[i] = strides[i];
  }
  view.sizes[d] = r.count;
  // With fewer than two elements the stride is never used; it must not overflow for absurd steps.
  if (__builtin_mul_overflow(strides[d], step, &view.strides[d])) view.strides[d] = strides[d];
  return view.finish(self.storage_offset() + std::max<int64_t>(r.start, 0) * strides[d]);
}

// Room for views of one tensor, of which an empty one may have more than any memory holds.
static std::vector<Tensor> room_for(int64_t count, const char* op) {
  LAMINA_CHECK(count < int64_t{1} << 32, op, ": too many views for one call; got ", count);
  std::vector<Tensor> out;
  out.reserve(static_cast<size_t>(count));
  return out;
}

std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim) {
  LAMINA_CHECK(self.dim() > 0, "split: split expects at least a 1-dimensional tensor");
  LAMINA_CHECK(split_size >= 0,
               "split: split expects split_size be non-negative, but got split_size=", split_size);
  const int64_t d = wrap_dim(dim, self.dim(), "split");
  const int64_t n = self.sizes()[d];
  LAMINA_CHECK(split_size > 0 || n == 0,
               "split: split_size can only be 0 if dimension size is 0, but got dimension size of ",
               n);
  if (split_size == 0 || n == 0) return {slice(self, d, 0, n, 1)};
  std::vector<Tensor> out = room_for((n - 1) / split_size + 1, "split");
  for (int64_t at = 0; at < n; at += std::min(split_size, n - at))
    out.push_back(slice(self, d, at, at + std::min(split_size, n - at), 1));
  return out;
}
std::vector<Tensor> split_with_sizes(const Tensor& self, IntList split_sizes, int64_t dim) {
  LAMINA_CHECK(self.dim() > 0, "split_with_sizes: split expects at least a 1-dimensional tensor");
  const int64_t d = wrap_dim(dim, self.dim(), "split_with_sizes");
  Dim sum = 0;
  for (const int64_t s : split_sizes) {
    LAMINA_CHECK(s >= 0,
                 "split_with_sizes: split_with_sizes expects split_sizes have only non-negative "
                 "entries, but got ",
                 split_sizes);
    sum += Dim(s);
  }
  LAMINA_CHECK(sum.value() == self.sizes()[d],
               "split_with_sizes: split_with_sizes expects split_sizes to sum exactly to ",
               self.sizes()[d], " (input tensor's size at dimension ", d,
               "), but got split_sizes=", split_sizes);
  std::vector<Tensor> out;
  int64_t at = 0;
  for (const int64_t s : split_sizes) {
    out.push_back(slice(self, d, at, at + s, 1));
    at += s;
  }
  return out;
}
std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  LAMINA_CHECK_INDEX(self.dim() > 0, "unbind: Dimension specified as ", dim,
                     " but tensor has no dimensions");
  const int64_t d = wrap_dim(dim, self.dim(), "unbind");
  std::vector<Tensor> out = room_for(self.sizes()[d], "unbind");
  for (int64_t i = 0; i < self.sizes()[d]; ++i) out.push_back(select(self, d, i));
  return out;
}

Tensor diagonal(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t a = wrap_dim(dim1, self.dim(), "diagonal"),
                b = wrap_dim(dim2, self.dim(), "diagonal");
  LAMINA_CHECK(a != b, "diagonal: diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  const int64_t na = self.sizes()[a], nb = self.sizes()[b];
  const int64_t count = diagonal_size(na, nb, offset);
  int64_t at = self.storage_offset();
  if (count > 0) at += offset >= 0 ? offset * self.strides()[b] : -offset * self.strides()[a];
  Sizes sizes = copy(self.sizes()), strides = copy(self.strides());
  // Unsigned: strides of an empty tensor need not add up.
  const auto step =
      static_cast<int64_t>(static_cast<uint64_t>(strides[a]) + static_cast<uint64_t>(strides[b]));
  for (const int64_t d : {std::max(a, b), std::min(a, b)}) {
    sizes.erase(d);
    strides.erase(d);
  }
  sizes.push_back(count);
  strides.push_back(step);
  return with_window(self, sizes, strides, at);
}

Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  const int64_t d = wrap_dim(dimension, self.dim(), "unfold");
  const int64_t n = self.dim() == 0 ? 1 : self.sizes()[d];
  LAMINA_CHECK(size >= 0, "unfold: size is ", size, " but must be >= 0");
  LAMINA_CHECK(size <= n, "unfold: maximum size for tensor at dimension ", d, " is ", n,
               " but size is ", size);
  LAMINA_CHECK(step > 0, "unfold: step is ", step, " but must be > 0");
  Sizes sizes = copy(self.sizes()), strides = copy(self.strides());
  sizes.push_back(size);
  strides.push_back(self.dim() == 0 ? 1 : self.strides()[d]);
  if (self.dim() > 0) {
    sizes[d] = (n - size) / step + 1;
    strides[d] = sizes[d] > 1 ? static_cast<int64_t>(Dim(strides[d]) * Dim(step)) : strides[d];
  }
  return with_window(self, sizes, strides, self.storage_offset());
}

namespace {
Tensor with_mark_flipped(const Tensor& self, DispatchKey mark) {
  Tensor out = alias_window(self, self.sizes(), self.strides(), self.storage_offset());
  out.impl()->set_keys(self.keys().has(mark) ? self.keys() - mark : self.keys() | mark);
  return out;
}
}  // namespace

Tensor view_as_real(const Tensor& self) {
  LAMINA_CHECK(self.is_complex(), "view_as_real: only supported for complex tensors; got ", self);
  LAMINA_CHECK(
      !self.keys().has(DispatchKey::Conjugate),
      "view_as_real: doesn't work on unresolved conjugated tensors; call resolve_conj() first");
  Sizes sizes = copy(self.sizes()), strides = copy(self.strides());
  for (int64_t& s : strides) s = Dim(s) * Dim(2);
  sizes.push_back(2);
  strides.push_back(1);
  return retyped(self, to_real(self.dtype()), sizes, strides, self.storage_offset() * 2);
}

Tensor view_as_complex(const Tensor& self) {
  LAMINA_CHECK(self.dtype() == ScalarType::Float32 || self.dtype() == ScalarType::Float64,
               "view_as_complex: only supported for floating point tensors of 32 and 64 bits; got ",
               self);
  LAMINA_CHECK(self.dim() > 0 && self.size(-1) == 2,
               "view_as_complex: Tensor must have a last dimension of size 2; got ", self);
  LAMINA_CHECK(self.stride(-1) == 1,
               "view_as_complex: Tensor must have a last dimension with stride 1; got strides ",
               self.strides());
  LAMINA_CHECK(self.storage_offset() % 2 == 0,
               "view_as_complex: Tensor must have a storage_offset divisible by 2; got ",
               self.storage_offset());
  Sizes sizes = copy(self.sizes()), strides = copy(self.strides());
  sizes.pop_back();
  strides.pop_back();
  for (int64_t& s : strides) {
    LAMINA_CHECK(s % 2 == 0,
                 "view_as_complex: Tensor must have a stride divisible by 2 for all but last "
                 "dimension; got ",
                 self.strides());
    s /= 2;
  }
  return retyped(self, to_complex(self.dtype()), sizes, strides, self.storage_offset() / 2);
}

Tensor conj_view(const Tensor& self) {
  LAMINA_CHECK(self.is_complex(), "_conj: only complex tensors carry a pending conjugation; got ",
               self);
  return with_mark_flipped(self, DispatchKey::Conjugate);
}
Tensor neg_view(const Tensor& self) { return with_mark_flipped(self, DispatchKey::Negative); }

Tensor alias(const Tensor& self) {
  return alias_window(self, self.sizes(), self.strides(), self.storage_offset());
}

}  // namespace lamina::kernels
