// Memory for small headers. core/ names these two functions; memory/ defines them (a thread-local
// free list).
#pragma once

#include <cstddef>

namespace lamina {

// 64-byte aligned. Throws Error(OutOfMemory).
void* allocate_block(size_t bytes);
void free_block(void* block, size_t bytes) noexcept;

}  // namespace lamina
