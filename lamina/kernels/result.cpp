#include "lamina/kernels/result.h"

#include <cstring>

#include "lamina/core/error.h"
#include "lamina/memory/allocator.h"
#include "lamina/shape/broadcast.h"
#include "lamina/shape/promotion.h"
#include "lamina/tile/tile.h"
#include "lamina/transforms/batched.h"

namespace lamina {

namespace {

void free_cpu(void* data, size_t nbytes, void*) noexcept { memory::cpu_deallocate(data, nbytes); }

// Product of sizes, after the checks that every creation needs.
int64_t checked_numel(IntList sizes, ScalarType dtype) {
  for (const int64_t s : sizes)
    LAMINA_CHECK(s >= 0, "empty: Trying to create tensor with negative dimension ", s,
                 "; got sizes ", sizes);
  const int64_t n = numel_of(sizes);
  if (n == 0) {
    Dim step = 1;  // the strides of an empty tensor must be numbers, too
    for (const int64_t s : sizes) step *= std::max<int64_t>(s, 1);
  }
  int64_t bytes;
  LAMINA_CHECK(!__builtin_mul_overflow(n, static_cast<int64_t>(item_size(dtype)), &bytes),
               "empty: the storage size overflows 64 bits; got sizes ", sizes, " of ", dtype);
  return n;
}

IntrusivePtr<Storage> make_storage(size_t bytes, Device device) {
  if (device.is_meta()) return Storage::make(nullptr, bytes, device, nullptr);
  void* data = memory::cpu_allocate(bytes);
  return Storage::make(data, bytes, device, free_cpu);
}

void check_device(Device device) {
  LAMINA_CHECK(device.is_cpu() || device.is_meta(), "empty: no memory on this device; got ", device,
               "; expected cpu or meta (Lamina was built without CUDA)");
}

TensorImpl* make_impl(int64_t items, ScalarType dtype, Device device) {
  const size_t bytes = static_cast<size_t>(items) * item_size(dtype);
  if (device.is_cpu() && bytes <= TensorImpl::kMaxInBlock)
    return TensorImpl::make_in_block(dtype, device, bytes);
  check_device(device);
  return TensorImpl::make(dtype, device, strided_keys(device.type), make_storage(bytes, device));
}

// Offset of the last element relative to the first, for non-negative strides and no empty
// dimension.
int64_t reach(IntList sizes, IntList strides) {
  Dim last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) last += Dim(sizes[i] - 1) * Dim(strides[i]);
  return last;
}

}  // namespace

namespace {

// Whether a row-major tensor of these sizes fits in one block with its header; `numel` is then set.
// What raises or overflows does not.
inline bool fits_block(IntList sizes, ScalarType dtype, Device device, int64_t& numel) {
  if (!device.is_cpu() || sizes.size() > TensorImpl::kInlineDims) return false;
  uint64_t n = 1, largest = 0;
  for (const int64_t s : sizes) {
    largest |= static_cast<uint64_t>(s);
    n *= static_cast<uint64_t>(s);
  }
  // Up to 2^12 in five dimensions nothing overflows.
  if (largest >= 4096) return false;
  numel = static_cast<int64_t>(n);
  return n * item_size(dtype) <= TensorImpl::kMaxInBlock;
}

}  // namespace

Tensor empty_contiguous(IntList sizes, ScalarType dtype, Device device) {
  if (int64_t numel; fits_block(sizes, dtype, device, numel))
    return Tensor::adopt(TensorImpl::make_in_block(
        dtype, device, static_cast<size_t>(numel) * item_size(dtype), sizes, numel));
  const int64_t n = checked_numel(sizes, dtype);
  TensorImpl* impl = make_impl(n, dtype, device);
  Tensor t = Tensor::adopt(impl);
  impl->set_contiguous_window(sizes);
  return t;
}

Tensor empty_strided(IntList sizes, IntList strides, ScalarType dtype, Device device) {
  LAMINA_CHECK(sizes.size() == strides.size(),
               "empty_strided: mismatch in length of strides and shape; got sizes ", sizes,
               " and strides ", strides);
  const int64_t n = checked_numel(sizes, dtype);
  for (const int64_t s : strides)
    LAMINA_CHECK(s >= 0, "empty_strided: a new tensor cannot have negative strides; got ", strides);
  const int64_t items = n == 0 ? 0 : static_cast<int64_t>(Dim(reach(sizes, strides)) + Dim(1));
  checked_numel({items}, dtype);
  TensorImpl* impl = make_impl(items, dtype, device);
  Tensor t = Tensor::adopt(impl);
  impl->set_window(sizes, strides, 0);
  return t;
}

Tensor empty_preserving(const Tensor& like, ScalarType dtype) {
  if (like.is_contiguous()) return empty_contiguous(like.sizes(), dtype, like.device());
  bool plain = true;
  for (const int64_t s : like.strides()) plain &= s >= 0;
  if (plain && like.is_non_overlapping_and_dense())
    return empty_strided(like.sizes(), like.strides(), dtype, like.device());
  const Sizes strides[] = {Sizes(std::span<const int64_t>(like.strides()))};
  return empty_strided(like.sizes(), result_strides(like.sizes(), strides), dtype, like.device());
}

void zero_bytes(const Tensor& t) {
  if (t.is_meta() || t.numel() == 0) return;
  if (t.is_contiguous()) {
    std::memset(t.data(), 0, t.nbytes());
    return;
  }
  tile::fill({t.data(), t.dtype(), t.strides().data()}, static_cast<int>(t.dim()), t.sizes().data(),
             Scalar(false));
}

void check_window(const Tensor& self, IntList sizes, IntList strides, int64_t offset,
                  ScalarType dtype, const char* op) {
  LAMINA_CHECK(sizes.size() == strides.size(), op,
               ": mismatch in length of strides and shape; got sizes ", sizes, " and strides ",
               strides);
  for (const int64_t s : sizes) LAMINA_CHECK(s >= 0, op, ": negative size; got ", sizes);
  LAMINA_CHECK(offset >= 0, op, ": Tensor: invalid storage offset ", offset);
  if (numel_of(sizes) == 0) return;
  Dim low = offset, high = offset;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Dim step = Dim(sizes[i] - 1) * Dim(strides[i]);
    (step.value() < 0 ? low : high) += step;
  }
  const Dim end = (high + Dim(1)) * Dim(static_cast<int64_t>(item_size(dtype)));
  const int64_t have = self.storage() ? static_cast<int64_t>(self.storage()->nbytes()) : 0;
  LAMINA_CHECK(low.value() >= 0 && end.value() <= have, op, ": setStorage: sizes ", sizes,
               ", strides ", strides, ", storage offset ", offset, " require a storage size of ",
               end.value(), " bytes, are out of bounds for storage of size ", have);
}

Tensor alias_without_window(const Tensor& self) {
  TensorImpl* from = self.impl();
  TensorImpl* impl = TensorImpl::make(from->dtype(), from->device(), from->keys(),
                                      IntrusivePtr<Storage>::share(from->storage()));
  if (from->version_counter()) impl->set_version_counter(from->version_counter());
  impl->set_inference(from->is_inference());
  impl->set_view(true);
  return Tensor::adopt(impl);
}

Tensor alias_window(const Tensor& self, IntList sizes, IntList strides, int64_t offset) {
  Tensor t = alias_without_window(self);
  t.impl()->set_window(sizes, strides, offset);
  return t;
}

Tensor at_least_1d(const Tensor& t) {
  return t.dim() == 0 ? alias_window(t, {1}, {1}, t.storage_offset()) : t;
}

void resize(const Tensor& t, IntList sizes, const char* op) {
  const int64_t n = checked_numel(sizes, t.dtype());
  const size_t need =
      (static_cast<size_t>(n) + static_cast<size_t>(t.storage_offset())) * item_size(t.dtype());
  Storage* storage = t.storage();
  if (need > storage->nbytes()) {
    LAMINA_CHECK(storage->resizable(), op,
                 ": Trying to resize storage that is not resizable; got a tensor of sizes ",
                 t.sizes(), ", asked for ", sizes);
    if (t.is_meta()) {
      storage->reset(nullptr, need, nullptr);
    } else {
      void* bigger = memory::cpu_allocate(need);
      if (storage->data()) std::memcpy(bigger, storage->data(), storage->nbytes());
      storage->reset(bigger, need, free_cpu);
    }
  }
  t.impl()->set_contiguous_window(sizes);
}

void prepare_out(const Tensor& out, IntList sizes, ScalarType result_dtype, Device device,
                 const char* op) {
  LAMINA_CHECK(can_cast(result_dtype, out.dtype()), op, ": result type ", legacy_name(result_dtype),
               " can't be cast to the desired output type ", legacy_name(out.dtype()));
  LAMINA_CHECK(out.device().type == device.type, op, ": Expected out tensor to have device ",
               device, ", but got ", out.device(), " instead");
  if (out.sizes() != sizes) {
    resize(out, sizes, op);
    return;
  }
}

void prepare_inplace(const Tensor& self, IntList sizes, ScalarType result_dtype, const char* op) {
  LAMINA_CHECK(can_cast(result_dtype, self.dtype()), op, ": result type ",
               legacy_name(result_dtype), " can't be cast to the desired output type ",
               legacy_name(self.dtype()));
  LAMINA_CHECK(self.sizes() == sizes, op, ": output with shape ", self.sizes(),
               " doesn't match the broadcast shape ", sizes);
}

void check_no_internal_overlap(const Tensor& written, const char* op) {
  LAMINA_CHECK(internal_overlap(written) != Overlap::Yes, op,
               ": unsupported operation: more than one element of the written-to tensor refers to "
               "a single memory "
               "location; got sizes ",
               written.sizes(), " and strides ", written.strides(),
               ". Please clone() the tensor before performing the operation.");
}

void check_no_partial_overlap(const Tensor& written, const Tensor& input, const char* op) {
  if (written.storage() != input.storage() || written.is_same(input) || same_window(written, input))
    return;
  LAMINA_CHECK(!may_share_bytes(written, input), op,
               ": unsupported operation: some elements of the input tensor and the written-to "
               "tensor refer to a single "
               "memory location. Please clone() the tensor before performing the operation.");
}

Device common_device(std::initializer_list<const Tensor*> tensors, const char* op) {
  const Tensor* chosen = nullptr;
  for (const Tensor* t : tensors) {
    if (!t->defined()) continue;
    if (!chosen || (chosen->dim() == 0 && chosen->device().is_cpu() &&
                    t->device() != chosen->device() && !(t->dim() == 0 && t->device().is_cpu())))
      chosen = t;
  }
  if (!chosen) return kCpu;
  for (const Tensor* t : tensors) {
    if (!t->defined() || t->device().type == chosen->device().type) continue;
    LAMINA_CHECK(
        t->dim() == 0 && t->device().is_cpu(), op,
        ": Expected all tensors to be on the same device, but found at least two devices, ",
        chosen->device(), " and ", t->device(), "!");
  }
  return chosen->device();
}

void copy_values(const Tensor& out, const Tensor& in) {
  if (out.is_meta() || out.numel() == 0) return;
  LAMINA_CHECK(!in.is_meta(), "copy_: Cannot copy out of meta tensor; no data!");
  LAMINA_CHECK(in.sizes() == out.sizes() || is_expandable(in.sizes(), out.sizes()),
               "copy_: sizes do not fit; got ", in, " for a target of size ", out.sizes());
  LAMINA_CHECK(in.data() && out.data(),
               "copy_: a tensor without memory, such as one inside vmap; got ", in, " for ", out);
  const Sizes strides = broadcast_strides(in.sizes(), in.strides(), out.sizes());
  tile::copy({out.data(), out.dtype(), out.strides().data()},
             {in.data(), in.dtype(), strides.data()}, static_cast<int>(out.dim()),
             out.sizes().data());
}

Scalar scalar_of(const Tensor& t) {
  LAMINA_CHECK(t.numel() == 1, "item: a Tensor with ", t.numel(),
               " elements cannot be converted to Scalar");
  LAMINA_CHECK(!t.is_meta(), "item: Tensor.item() cannot be called on meta tensors");
  if (transforms::is_batched(t)) transforms::raise_item("calling .item() on a Tensor");
  LAMINA_CHECK(t.data() != nullptr, "item: the tensor has no memory");
  const Scalar v = tile::load_scalar(t.data(), t.dtype());
  if (t.keys().has(DispatchKey::Conjugate)) return std::conj(v.to_complex());
  if (t.keys().has(DispatchKey::Negative))
    return v.is_complex() ? Scalar(-v.to_complex()) : Scalar(-v.to_double());
  return v;
}

Tensor contiguous_values(const Tensor& t) {
  if (t.is_contiguous()) return t;
  Tensor out = empty_contiguous(t.sizes(), t.dtype(), t.device());
  copy_values(out, t);
  return out;
}

Tensor converted(const Tensor& t, ScalarType dtype) {
  if (t.dtype() == dtype) return t;
  Tensor out = empty_preserving(t, dtype);
  copy_values(out, t);
  return out;
}

}  // namespace lamina
