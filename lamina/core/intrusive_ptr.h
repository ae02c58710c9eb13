// Reference counting inside the object. T gives `retain() const noexcept` and `release() const
// noexcept`.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace lamina {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  virtual ~RefCounted() = default;

  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  void release() const noexcept {
    if (count_.fetch_sub(1, std::memory_order_acq_rel) == 1) destroy();
  }
  uint32_t use_count() const noexcept { return count_.load(std::memory_order_acquire); }
  // Takes a reference unless the object is already dying. For weak slots guarded by a lock of their
  // own.
  bool try_retain() const noexcept {
    uint32_t n = count_.load(std::memory_order_relaxed);
    while (n != 0)
      if (count_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) return true;
    return false;
  }

 protected:
  virtual void destroy() const noexcept { delete this; }

 private:
  mutable std::atomic<uint32_t> count_{1};
};

template <class T>
class IntrusivePtr {
 public:
  constexpr IntrusivePtr() = default;
  constexpr IntrusivePtr(std::nullptr_t) {}
  IntrusivePtr(const IntrusivePtr& o) noexcept : p_(o.p_) {
    if (p_) p_->retain();
  }
  IntrusivePtr(IntrusivePtr&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  IntrusivePtr(IntrusivePtr<U> o) noexcept : p_(o.leak()) {}
  ~IntrusivePtr() {
    if (p_) p_->release();
  }
  IntrusivePtr& operator=(IntrusivePtr o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  // Takes over the reference that the caller holds.
  static IntrusivePtr adopt(T* p) noexcept {
    IntrusivePtr r;
    r.p_ = p;
    return r;
  }
  static IntrusivePtr share(T* p) noexcept {
    if (p) p->retain();
    return adopt(p);
  }
  template <class... Args>
  static IntrusivePtr make(Args&&... args) {
    return adopt(new T(std::forward<Args>(args)...));
  }
  T* leak() noexcept { return std::exchange(p_, nullptr); }
  T* get() const noexcept { return p_; }
  T& operator*() const noexcept { return *p_; }
  T* operator->() const noexcept { return p_; }
  explicit operator bool() const noexcept { return p_ != nullptr; }
  friend bool operator==(const IntrusivePtr& a, const IntrusivePtr& b) { return a.p_ == b.p_; }

 private:
  T* p_ = nullptr;
};

}  // namespace lamina
