// Composite views.
#include <algorithm>

#include "lamina/autograd/formulas.h"
#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"
#include "lamina/ops.h"
#include "lamina/shape/broadcast.h"
#include "lamina/shape/view.h"

namespace lamina::composite {

Tensor numpy_T(const Tensor& self) {
  Sizes dims;
  for (int64_t i = self.dim() - 1; i >= 0; --i) dims.push_back(i);
  return ops::permute(self, dims);
}
Tensor mT(const Tensor& self) {
  LAMINA_CHECK(self.dim() >= 2,
               "mT: tensor.mT is only supported on matrices or batches of matrices. Got ",
               self.dim(), "-D tensor.");
  return ops::transpose(self, -2, -1);
}
Tensor mH(const Tensor& self) {
  LAMINA_CHECK(self.dim() >= 2,
               "mH: tensor.mH is only supported on matrices or batches of matrices. Got ",
               self.dim(), "-D tensor.");
  return ops::conj(ops::transpose(self, -2, -1));
}
Tensor matrix_H(const Tensor& self) {
  LAMINA_CHECK(self.dim() == 2 || self.dim() == 0,
               "H: tensor.H is only supported on matrices (2-D tensors). Got ", self.dim(),
               "-D tensor.");
  return self.dim() == 0 ? ops::conj(self) : ops::conj(ops::transpose(self, 0, 1));
}

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  LAMINA_CHECK(self.dim() > 0, "narrow: narrow() cannot be applied to a 0-dim tensor.");
  LAMINA_CHECK(length >= 0, "narrow: narrow(): length must be non-negative.");
  const int64_t d = wrap_dim(dim, self.dim(), "narrow");
  const int64_t n = self.sizes()[d];
  LAMINA_CHECK_INDEX(start >= -n && start <= n,
                     "narrow: start out of range (expected to be in range of [", -n, ", ", n,
                     "], but got ", start, ")");
  const int64_t from = start < 0 ? start + n : start;
  LAMINA_CHECK(from <= n - length, "narrow: start (", start, ") + length (", length,
               ") exceeds dimension size (", n, ").");
  return ops::slice(self, d, from, from + length, 1);
}
Tensor narrow_tensor(const Tensor& self, int64_t dim, const Tensor& start, int64_t length) {
  LAMINA_CHECK(start.dim() == 0 && is_integral(start.dtype()),
               "narrow: start must be an 0-dim integral Tensor.");
  return narrow(self, dim, scalar_of(start).to_int(), length);
}

std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  LAMINA_CHECK(self.dim() > 0, "chunk: chunk expects at least a 1-dimensional tensor");
  LAMINA_CHECK(chunks > 0, "chunk: chunk expects `chunks` to be greater than 0, got: ", chunks);
  const int64_t d = wrap_dim(dim, self.dim(), "chunk");
  const int64_t n = self.sizes()[d];
  if (n == 0)
    return ops::split_with_sizes(
        self, Sizes(static_cast<size_t>(std::min<int64_t>(chunks, 1 << 20)), 0), d);
  return ops::split(self, n / chunks + (n % chunks != 0), d);
}
Tensor movedim(const Tensor& self, IntList source, IntList destination) {
  LAMINA_CHECK(source.size() == destination.size(),
               "movedim: Invalid source or destination dims: source (", source,
               " dims) should contain the same number of dims "
               "as destination (",
               destination, " dims)");
  const int64_t n = self.dim();
  Sizes order(static_cast<size_t>(n), -1);
  uint64_t taken_source = 0, taken_destination = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    const int64_t s = wrap_dim(source[i], n, "movedim"), d = wrap_dim(destination[i], n, "movedim");
    LAMINA_CHECK(!(taken_source >> s & 1), "movedim: repeated dim in `source` (", source, ")");
    LAMINA_CHECK(!(taken_destination >> d & 1), "movedim: repeated dim in `destination` (",
                 destination, ")");
    taken_source |= uint64_t{1} << s;
    taken_destination |= uint64_t{1} << d;
    if (n > 0) order[d] = s;
  }
  if (n == 0) return ops::alias(self);
  int64_t next = 0;
  for (int64_t d = 0; d < n; ++d) {
    if (order[d] >= 0) continue;
    while (taken_source >> next & 1) ++next;
    order[d] = next++;
  }
  return ops::permute(self, order);
}
Tensor movedim_int(const Tensor& self, int64_t source, int64_t destination) {
  return movedim(self, {source}, {destination});
}

Tensor reshape(const Tensor& self, IntList shape) {
  const Sizes sizes = infer_size(shape, self.numel(), "reshape");
  if (const auto strides = view_strides(self.sizes(), self.strides(), sizes))
    return ops::_reshape_alias(self, sizes, *strides);
  return ops::view(ops::clone(self, MemoryFormat::Contiguous), sizes);
}
Tensor reshape_as(const Tensor& self, const Tensor& other) {
  return ops::reshape(self, other.sizes());
}
Tensor view_as(const Tensor& self, const Tensor& other) { return ops::view(self, other.sizes()); }
Tensor expand_as(const Tensor& self, const Tensor& other) {
  return ops::expand(self, other.sizes());
}

Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  const int64_t s = wrap_dim(start_dim, self.dim(), "flatten"),
                e = wrap_dim(end_dim, self.dim(), "flatten");
  LAMINA_CHECK(s <= e, "flatten: flatten() has invalid args: start_dim cannot come after end_dim");
  if (self.dim() == 0) return ops::reshape(self, {1});
  if (s == e) return self;
  Sizes sizes;
  for (int64_t i = 0; i < s; ++i) sizes.push_back(self.sizes()[i]);
  Dim n = 1;
  for (int64_t i = s; i <= e; ++i) n *= self.sizes()[i];
  sizes.push_back(n);
  for (int64_t i = e + 1; i < self.dim(); ++i) sizes.push_back(self.sizes()[i]);
  return ops::reshape(self, sizes);
}
Tensor unflatten(const Tensor& self, int64_t dim, IntList sizes) {
  const int64_t d = wrap_dim(dim, self.dim(), "unflatten");
  LAMINA_CHECK(!sizes.empty(), "unflatten: unflatten: sizes must be non-empty");
  LAMINA_CHECK(self.dim() > 0, "unflatten: the tensor has no dimensions");
  Sizes inner;
  try {
    inner = infer_size(sizes, self.sizes()[d], "unflatten");
  } catch (const Error&) {
    raise(ErrorKind::Runtime,
          str("unflatten: Provided sizes ", sizes, " don't multiply up to the size of dim ", d,
              " (", self.sizes()[d], ") in the input tensor"));
  }
  Sizes all;
  for (int64_t i = 0; i < d; ++i) all.push_back(self.sizes()[i]);
  for (const int64_t s : inner) all.push_back(s);
  for (int64_t i = d + 1; i < self.dim(); ++i) all.push_back(self.sizes()[i]);
  return ops::view(self, all);
}
Tensor ravel(const Tensor& self) { return ops::view(ops::contiguous(self), {-1}); }

std::vector<Tensor> broadcast_tensors(TensorList tensors) {
  Sizes sizes;
  for (const Tensor& t : tensors) sizes = broadcast_sizes(sizes, t.sizes(), "broadcast_tensors");
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) out.push_back(ops::expand(t, sizes));
  return out;
}
Tensor atleast_1d(const Tensor& self) { return self.dim() == 0 ? ops::reshape(self, {1}) : self; }

// ---- complex
// --------------------------------------------------------------------------------------------------------

Tensor conj(const Tensor& self) { return self.is_complex() ? ops::_conj(self) : self; }

Tensor real(const Tensor& self) {
  if (!self.is_complex()) return self;
  const Tensor plain = self.keys().has(DispatchKey::Conjugate) ? ops::_conj(self) : self;
  return ops::select(ops::view_as_real(plain), -1, 0);
}
Tensor imag(const Tensor& self) {
  LAMINA_CHECK(self.is_complex(),
               "imag: imag is not implemented for tensors with non-complex dtypes; got ", self);
  if (self.keys().has(DispatchKey::Conjugate))
    return ops::_neg_view(ops::select(ops::view_as_real(ops::_conj(self)), -1, 1));
  return ops::select(ops::view_as_real(self), -1, 1);
}

Tensor resolve_conj(const Tensor& self) {
  return self.keys().has(DispatchKey::Conjugate) ? ops::_conj_physical(ops::_conj(self)) : self;
}
Tensor resolve_neg(const Tensor& self) {
  return self.keys().has(DispatchKey::Negative) ? ops::neg(ops::_neg_view(self)) : self;
}

}  // namespace lamina::composite
