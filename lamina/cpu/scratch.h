// Memory that lives as long as a scope.
#pragma once

#include <cstddef>

#include "lamina/memory/allocator.h"

namespace lamina::cpu {

class Scratch {
 public:
  explicit Scratch(size_t bytes) : data_(memory::cpu_allocate(bytes)), bytes_(bytes) {}
  ~Scratch() {
    if (data_) memory::cpu_deallocate(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  template <class T = void>
  T* get() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_;
  size_t bytes_;
};

// items * size, or a number that no allocator grants.
inline size_t bytes_of(int64_t items, size_t size) {
  size_t bytes;
  return items < 0 || __builtin_mul_overflow(static_cast<size_t>(items), size, &bytes) ? SIZE_MAX
                                                                                       : bytes;
}

}  // namespace lamina::cpu
