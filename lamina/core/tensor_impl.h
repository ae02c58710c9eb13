// What a tensor is: a window (offset, sizes, signed strides) on a storage, with type, keys and two
// slots: one for autograd, one for the Python object.
#pragma once

#include <atomic>
#include <memory>

#include "lamina/core/dim.h"
#include "lamina/core/dispatch_key.h"
#include "lamina/core/intrusive_ptr.h"
#include "lamina/core/scalar_type.h"
#include "lamina/core/small_vector.h"
#include "lamina/core/storage.h"

namespace lamina {

// What core/ must know of autograd's data; autograd/ derives the rest.
class AutogradMeta {
 public:
  virtual ~AutogradMeta() = default;
  bool requires_grad = false;  // set by the user on a leaf
  bool has_grad_fn = false;    // made by a recorded operator
};

// A version count that a tensor does not share with its storage (x.data).
class VersionCounter : public RefCounted {
 public:
  std::atomic<uint32_t> value{0};
};

// How a differentiable view came to be: it decides whether a recorded write may go through it.
enum class ViewOrigin : uint8_t {
  Recorded,        // by a view operator while recording was possible
  CustomFunction,  // inside a function with a backward of its own
  MultiOutput,     // one of several views that one operator gave
  NoGrad,          // under no_grad
  Inference,       // under inference_mode, of a normal tensor
};

// Called when a tensor dies that owns its Python object. True: somebody in Python has found the
// object again (through a weak reference) and the tensor lives on in it; the function has called
// revive().
using PyObjectReleaser = bool (*)(void* object) noexcept;
void set_pyobject_releaser(PyObjectReleaser f);

class TensorImpl {
 public:
  static constexpr int kInlineDims = 5;

  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    if (count_.load(std::memory_order_acquire) == 1 ||
        count_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      const_cast<TensorImpl*>(this)->destroy();
  }
  uint32_t use_count() const { return count_.load(std::memory_order_acquire); }
  // One reference for the Python object of a dying tensor; only for the releaser.
  void revive() { count_.store(1, std::memory_order_release); }

  ScalarType dtype() const { return dtype_; }
  Device device() const { return device_; }
  KeySet keys() const { return keys_; }
  int64_t ndim() const { return ndim_; }
  int64_t numel() const { return numel_; }
  int64_t offset() const { return offset_; }
  const int64_t* sizes_data() const { return ndim_ <= kInlineDims ? inline_ : heap_.get(); }
  const int64_t* strides_data() const { return sizes_data() + ndim_; }
  IntList sizes() const { return {sizes_data(), static_cast<size_t>(ndim_)}; }
  IntList strides() const { return {strides_data(), static_cast<size_t>(ndim_)}; }
  bool is_contiguous() const { return contiguous_; }
  Storage* storage() const { return storage_; }
  // Address of the element at index 0...; null where there is no memory.
  void* data() const {
    return storage_ && storage_->data() ? static_cast<char*>(storage_->data()) +
                                              offset_ * static_cast<int64_t>(item_size(dtype_))
                                        : nullptr;
  }
  // A view asks its base too: a recorded write to the base, or through another view of it, gives
  // the whole family a history.
  bool requires_grad() const {
    return (autograd_ && (autograd_->has_grad_fn || autograd_->requires_grad)) ||
           (base_ && base_->requires_grad());
  }
  AutogradMeta* autograd() const { return autograd_.get(); }
  void set_autograd(std::unique_ptr<AutogradMeta> meta) { autograd_ = std::move(meta); }

  void set_keys(KeySet keys) { keys_ = keys; }
  void set_dtype(ScalarType t) { dtype_ = t; }
  void set_storage(IntrusivePtr<Storage> s) {
    if (storage_) storage_->release();
    storage_ = s.leak();
  }
  void set_window(IntList sizes, IntList strides, int64_t offset);
  void set_contiguous_window(IntList sizes);  // strides of row-major order, offset kept
  // For kernels of views: room for `ndim` sizes, then as many strides, to be written; after it,
  // finish_window counts what was written. Only for a tensor nobody else sees yet.
  int64_t* begin_window(int64_t ndim) { return reserve_dims(ndim); }
  void finish_window(int64_t offset);
  void set_offset(int64_t offset) { offset_ = offset; }

  uint32_t version() const {
    return counter_   ? counter_->value.load(std::memory_order_relaxed)
           : storage_ ? storage_->version()
                      : 0;
  }
  void bump_version() {
    if (counter_)
      counter_->value.fetch_add(1, std::memory_order_relaxed);
    else if (storage_)
      storage_->bump_version();
  }
  const IntrusivePtr<VersionCounter>& version_counter() const { return counter_; }
  void set_version_counter(IntrusivePtr<VersionCounter> c) { counter_ = std::move(c); }

  // Made under inference_mode: never recorded, versions not tracked.
  bool is_inference() const { return inference_; }
  void set_inference(bool v) { inference_ = v; }

  // On the bytes of another tensor (views, and detach): writes to it change that one too.
  bool is_view() const { return view_; }
  void set_view(bool v) { view_ = v; }

  // The tensor that owns the history of a differentiable view's bytes: never a view itself. Null
  // for tensors that are no such views.
  TensorImpl* base() const { return base_; }
  ViewOrigin view_origin() const { return origin_; }
  // Version of the bytes that the view's own history describes; another one means that the base's
  // history has gone on.
  uint32_t view_version() const { return view_version_; }
  void set_base(TensorImpl* base, ViewOrigin origin);
  void set_view_origin(ViewOrigin origin) { origin_ = origin; }
  void set_view_version(uint32_t v) { view_version_ = v; }

  // The Python object of this tensor, if it has one. While `owns_pyobject`, the reference is ours:
  // Python had dropped its last one while C++ still held the tensor.
  void* pyobject() const { return pyobject_; }
  bool owns_pyobject() const { return owns_pyobject_; }
  void set_pyobject(void* object, bool owns) {
    pyobject_ = object;
    owns_pyobject_ = owns;
  }

  // A tensor with header, storage and bytes in one allocation; `bytes` at most kMaxInBlock.
  static constexpr size_t kMaxInBlock = 512;
  static TensorImpl* make_in_block(ScalarType dtype, Device device, size_t bytes);
  // The same in row-major order: `numel` elements in all, at most kInlineDims sizes.
  static TensorImpl* make_in_block(ScalarType dtype, Device device, size_t bytes, IntList sizes,
                                   int64_t numel);
  // A tensor on a storage (may be null: no memory).
  static TensorImpl* make(ScalarType dtype, Device device, KeySet keys,
                          IntrusivePtr<Storage> storage);

 private:
  friend struct TensorBlock;
  TensorImpl(ScalarType dtype, Device device, KeySet keys, Storage* storage)
      : dtype_(dtype), device_(device), keys_(keys), storage_(storage) {
    inline_[0] = 0;
    inline_[1] = 1;
  }
  ~TensorImpl();
  void destroy() noexcept;
  int64_t* reserve_dims(int64_t ndim) {
    if (ndim > kInlineDims) return reserve_heap_dims(ndim);
    ndim_ = static_cast<uint8_t>(ndim);
    return inline_;
  }
  int64_t* reserve_heap_dims(int64_t ndim);

  mutable std::atomic<uint32_t> count_{1};
  ScalarType dtype_;
  Device device_;
  bool contiguous_ : 1 = true;
  bool inference_ : 1 = false;
  bool owns_pyobject_ : 1 = false;
  bool in_block_ : 1 = false;
  bool view_ : 1 = false;
  ViewOrigin origin_ : 3 = ViewOrigin::Recorded;
  uint8_t ndim_ = 1;
  KeySet keys_;
  uint32_t view_version_ = 0;
  Storage* storage_;
  TensorImpl* base_ = nullptr;
  int64_t offset_ = 0;
  int64_t numel_ = 0;
  void* pyobject_ = nullptr;
  std::unique_ptr<AutogradMeta> autograd_;
  IntrusivePtr<VersionCounter> counter_;
  std::unique_ptr<int64_t[]> heap_;  // sizes then strides, beyond kInlineDims
  int64_t inline_[2 * kInlineDims];
};

}  // namespace lamina
