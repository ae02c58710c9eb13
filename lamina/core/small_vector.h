// A vector of trivially copyable items that stays inside the object up to N of them, and a view of
// a list.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace lamina {

template <class T, size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  SmallVector() = default;
  explicit SmallVector(size_t n, T value = T{}) { resize(n, value); }
  SmallVector(std::initializer_list<T> v) { assign(v.begin(), v.size()); }
  explicit SmallVector(std::span<const T> v) { assign(v.data(), v.size()); }
  SmallVector(const SmallVector& o) { assign(o.data(), o.size()); }
  SmallVector(SmallVector&& o) noexcept
      : size_(o.size_), capacity_(o.capacity_), heap_(std::move(o.heap_)) {
    if (!heap_) take_inline(o);
    o.size_ = 0;
    o.capacity_ = N;
  }
  SmallVector& operator=(const SmallVector& o) {
    if (this != &o) assign(o.data(), o.size());
    return *this;
  }
  SmallVector& operator=(SmallVector&& o) noexcept {
    if (this == &o) return *this;
    heap_ = std::move(o.heap_);
    size_ = o.size_;
    capacity_ = o.capacity_;
    if (!heap_) take_inline(o);
    o.size_ = 0;
    o.capacity_ = N;
    return *this;
  }

  // A list of somebody else's.
  SmallVector& operator=(std::span<const T> list) {
    reserve(list.size());
    size_ = static_cast<uint32_t>(list.size());
    T* to = data();
    for (size_t i = 0; i < list.size(); ++i) to[i] = list[i];  // short: a call would cost more
    return *this;
  }

  void assign(const T* p, size_t n) {
    reserve(n);
    std::copy_n(p, n, data());
    size_ = static_cast<uint32_t>(n);
  }
  void reserve(size_t n) {
    if (n <= capacity_) return;
    const size_t capacity = std::max(n, size_t{capacity_} * 2);
    std::unique_ptr<T[]> bigger(new T[capacity]);
    std::copy_n(data(), size_, bigger.get());
    heap_ = std::move(bigger);
    capacity_ = static_cast<uint32_t>(capacity);
  }
  void resize(size_t n, T value = T{}) {
    reserve(n);
    if (n > size_) std::fill(data() + size_, data() + n, value);
    size_ = static_cast<uint32_t>(n);
  }
  void push_back(T v) {
    if (size_ == capacity_) reserve(size_ + 1);
    data()[size_++] = v;
  }
  void insert(size_t at, T v) {
    push_back(v);
    std::rotate(begin() + at, end() - 1, end());
  }
  void erase(size_t at) {
    std::move(begin() + at + 1, end(), begin() + at);
    --size_;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }

  T* data() { return heap_ ? heap_.get() : inline_; }
  const T* data() const { return heap_ ? heap_.get() : inline_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }

 private:
  // All of a small room in a few moves, whatever of it is in use: no call, no loop.
  void take_inline(const SmallVector& o) {
    if constexpr (sizeof(inline_) <= 64)
      std::memcpy(static_cast<void*>(inline_), o.inline_, sizeof(inline_));
    else
      std::copy_n(o.inline_, size_, inline_);
  }

  uint32_t size_ = 0;
  uint32_t capacity_ = N;
  std::unique_ptr<T[]> heap_;
  T inline_[N];
};

// A list somebody else owns. Lives no longer than the full expression it was made in.
template <class T>
class ListView {
 public:
  constexpr ListView() = default;
  constexpr ListView(const T* p, size_t n) : data_(p), size_(n) {}
  constexpr ListView(std::span<const T> v) : data_(v.data()), size_(v.size()) {}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
  constexpr ListView(std::initializer_list<T> v) : data_(v.begin()), size_(v.size()) {}
#pragma GCC diagnostic pop
  ListView(const std::vector<T>& v) : data_(v.data()), size_(v.size()) {}
  template <size_t N>
  ListView(const SmallVector<T, N>& v) : data_(v.data()), size_(v.size()) {}

  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  constexpr const T& back() const { return data_[size_ - 1]; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr operator std::span<const T>() const { return {data_, size_}; }
  friend bool operator==(const ListView& a, const ListView& b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; ++i)  // short lists: a call of memcmp would cost more
      if (!(a.data_[i] == b.data_[i])) return false;
    return true;
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

using IntList = ListView<int64_t>;
using Sizes = SmallVector<int64_t, 6>;  // sizes, strides, lists of dimensions

}  // namespace lamina
