// Bytes on a device, shared by a family of views.
#pragma once

#include <atomic>
#include <cstddef>

#include "lamina/core/device.h"
#include "lamina/core/intrusive_ptr.h"

namespace lamina {

class Storage {
 public:
  using Deleter = void (*)(void* data, size_t nbytes, void* context) noexcept;

  // Memory that somebody else made; `deleter` (may be null) gives it back when the last view is
  // gone.
  static IntrusivePtr<Storage> make(void* data, size_t nbytes, Device device, Deleter deleter,
                                    void* context = nullptr);

  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    // A storage nobody shares needs no atomic read-modify-write to die.
    if (count_.load(std::memory_order_acquire) == 1 ||
        count_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      const_cast<Storage*>(this)->destroy();
  }
  uint32_t use_count() const { return count_.load(std::memory_order_acquire); }

  void* data() const { return data_; }
  size_t nbytes() const { return nbytes_; }
  Device device() const { return device_; }
  bool resizable() const { return resizable_; }
  // Replaces the bytes (resize_); the old ones are given back.
  void reset(void* data, size_t nbytes, Deleter deleter, void* context = nullptr);
  void set_resizable(bool v) { resizable_ = v; }
  // Who gives the memory back, and what it is told: by these an owner knows a storage as its own.
  Deleter deleter() const { return deleter_; }
  void* context() const { return context_; }

  // Counts writes; every view that tracks versions through the storage sees the same number.
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() {
    version_.store(version_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

 private:
  friend struct TensorBlock;
  friend class TensorImpl;
  friend class Tensor;
  Storage(void* data, size_t nbytes, Device device, Deleter deleter, void* context)
      : device_(device), data_(data), nbytes_(nbytes), deleter_(deleter), context_(context) {}
  ~Storage() {
    if (deleter_) deleter_(data_, nbytes_, context_);
  }
  void destroy() noexcept;

  mutable std::atomic<uint32_t> count_{1};
  std::atomic<uint32_t> version_{0};
  Device device_;
  bool resizable_ = true;
  bool in_block_ = false;  // lives inside a TensorBlock
  void* data_;
  size_t nbytes_;
  Deleter deleter_;
  void* context_;
};

}  // namespace lamina
