// The tensor handle: one counted pointer. It has no operators; those are free functions in
// lamina/ops/.
#pragma once

#include <utility>

#include "lamina/core/tensor_impl.h"

namespace lamina {

class Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& o) noexcept : impl_(o.impl_) {
    if (impl_) impl_->retain();
  }
  Tensor(Tensor&& o) noexcept : impl_(std::exchange(o.impl_, nullptr)) {}
  Tensor& operator=(Tensor o) noexcept {
    std::swap(impl_, o.impl_);
    return *this;
  }
  ~Tensor() {
    if (impl_) impl_->release();
  }
  static Tensor adopt(TensorImpl* impl) {
    Tensor t;
    t.impl_ = impl;
    return t;
  }
  static Tensor share(TensorImpl* impl) {
    if (impl) impl->retain();
    return adopt(impl);
  }

  bool defined() const { return impl_ != nullptr; }
  TensorImpl* impl() const { return impl_; }
  TensorImpl* leak() { return std::exchange(impl_, nullptr); }
  bool is_same(const Tensor& o) const { return impl_ == o.impl_; }

  ScalarType dtype() const { return impl_->dtype(); }
  Device device() const { return impl_->device(); }
  KeySet keys() const { return impl_ ? impl_->keys() : KeySet(); }
  int64_t dim() const { return impl_->ndim(); }
  int64_t numel() const { return impl_->numel(); }
  IntList sizes() const { return impl_->sizes(); }
  IntList strides() const { return impl_->strides(); }
  int64_t storage_offset() const { return impl_->offset(); }
  // Negative dimensions count from the end; raises Index.
  int64_t size(int64_t dim) const { return impl_->sizes()[wrap_dim(dim, impl_->ndim(), "size")]; }
  int64_t stride(int64_t dim) const {
    return impl_->strides()[wrap_dim(dim, impl_->ndim(), "stride")];
  }
  bool is_contiguous() const { return impl_->is_contiguous(); }
  bool is_contiguous(MemoryFormat format) const;
  // Every element has its own address, and the addresses leave no gap.
  bool is_non_overlapping_and_dense() const;
  bool is_complex() const { return lamina::is_complex(dtype()); }
  bool is_floating_point() const { return lamina::is_floating(dtype()); }
  bool is_meta() const { return device().is_meta(); }
  bool requires_grad() const { return impl_ && impl_->requires_grad(); }
  Storage* storage() const { return impl_->storage(); }
  void* data() const { return impl_->data(); }
  // Raises Type where T is not the element type (only at debug sites; kernels dispatch on dtype
  // first).
  template <class T>
  T* data_as() const {
    return static_cast<T*>(impl_->data());
  }
  size_t nbytes() const { return static_cast<size_t>(numel()) * item_size(dtype()); }

 private:
  TensorImpl* impl_ = nullptr;
};

using TensorList = ListView<Tensor>;

void append(std::string& out, const Tensor& t);  // float32[2, 3]

// Whether two tensors can have bytes in common; `Maybe` where deciding would cost more than it is
// worth.
enum class Overlap : uint8_t { No, Yes, Maybe };
Overlap internal_overlap(const Tensor& t);  // do two indices share an address?
bool same_window(const Tensor& a, const Tensor& b);
bool may_share_bytes(const Tensor& a, const Tensor& b);

// Row-major strides.
Sizes contiguous_strides(IntList sizes);
Sizes strides_for(IntList sizes,
                  MemoryFormat format);  // raises Runtime where the rank does not fit

}  // namespace lamina
