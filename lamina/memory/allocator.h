// Allocators: one per device, with statistics, a settable limit and an out-of-memory error that
// leaves everything usable.
//
// On the CPU, blocks up to kSmallLimit bytes come from lists of the calling thread (inlined here, a
// few nanoseconds); larger blocks are kept in a bounded cache, since the page faults of fresh
// memory cost more than arithmetic on it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "lamina/event/event.h"

#if defined(__SANITIZE_ADDRESS__)
#define LAMINA_MEMORY_BYPASS \
  1  // every block comes from the C library, so that the sanitizer sees its life
#else
#define LAMINA_MEMORY_BYPASS 0
#endif

namespace lamina::memory {

inline constexpr size_t kAlignment = 64;
inline constexpr size_t kSmallLimit = 1024;
inline constexpr int64_t kNoLimit = INT64_MAX;

struct Statistics {
  int64_t allocated = 0;       // bytes asked for and not freed, rounded up to size classes
  int64_t peak_allocated = 0;  // largest `allocated` since the last reset_peak
  int64_t reserved = 0;        // bytes held from the system: allocated and cached
  int64_t peak_reserved = 0;
  int64_t cached = 0;       // large blocks held for reuse
  int64_t allocations = 0;  // calls
  int64_t frees = 0;
  int64_t cache_hits = 0;  // large blocks served from the cache
  int64_t out_of_memory = 0;
};

class Allocator {
 public:
  virtual ~Allocator() = default;
  // Aligned to kAlignment, contents undefined; nullptr for 0 bytes. Raises OutOfMemory.
  virtual void* allocate(size_t bytes) = 0;
  // `bytes` as given to allocate; from any thread.
  virtual void deallocate(void* block, size_t bytes) noexcept = 0;
  virtual Statistics statistics() const = 0;
  virtual void reset_peak() = 0;
  // Gives cached blocks back to the system.
  virtual void empty_cache() = 0;
  // Bytes that may be reserved; kNoLimit lifts the limit. What is already allocated stays.
  virtual void set_limit(int64_t bytes) = 0;
  virtual int64_t limit() const = 0;
};

Allocator& cpu_allocator();

// Bytes of large blocks that the CPU cache keeps at most; the oldest go first. Default: an eighth
// of the memory.
void set_cpu_cache_bound(int64_t bytes);

namespace detail {
inline constexpr int kSmallClasses = kSmallLimit / kAlignment;

struct FreeBlock {
  FreeBlock* next;
};

// Counters are written by their thread alone; others only read them.
struct Counter {
  std::atomic<int64_t> value{0};
  int64_t get() const { return value.load(std::memory_order_relaxed); }
  void set(int64_t v) { value.store(v, std::memory_order_relaxed); }
  void add(int64_t v) { set(get() + v); }
};

struct ThreadCache {
  FreeBlock* head[kSmallClasses] = {};
  uint16_t room[kSmallClasses] =
      {};             // blocks that each list still takes; 0 sends a free to the slow path
  Counter allocated;  // bytes, relative to what was handed to the shared counters
  Counter high;       // largest `allocated` since then
  Counter allocations;
  Counter frees;
  ThreadCache* next_thread = nullptr;
  bool registered = false;
};

extern __attribute__((tls_model("initial-exec"))) constinit thread_local ThreadCache t_cache;

void* allocate_slow(size_t bytes);
void deallocate_slow(void* block, size_t bytes) noexcept;
// The same as below, and the listener is told.
void* allocate_heard(size_t bytes);
void deallocate_heard(void* block, size_t bytes) noexcept;
}  // namespace detail

// The CPU allocator, without the virtual call.
inline void* cpu_allocate(size_t bytes) {
  if (event::listening()) [[unlikely]]
    return detail::allocate_heard(bytes);
#if !LAMINA_MEMORY_BYPASS
  const size_t c = (bytes - 1) / kAlignment;  // 0 bytes wrap around to a huge class
  if (c < detail::kSmallClasses) [[likely]] {
    detail::ThreadCache& cache = detail::t_cache;
    if (detail::FreeBlock* block = cache.head[c]) [[likely]] {
      cache.head[c] = block->next;
      ++cache.room[c];
      const int64_t allocated = cache.allocated.get() + static_cast<int64_t>((c + 1) * kAlignment);
      cache.allocated.set(allocated);
      if (allocated > cache.high.get()) cache.high.set(allocated);
      cache.allocations.add(1);
      return block;
    }
  }
#endif
  return detail::allocate_slow(bytes);
}

inline void cpu_deallocate(void* block, size_t bytes) noexcept {
  if (event::listening()) [[unlikely]]
    return detail::deallocate_heard(block, bytes);
#if !LAMINA_MEMORY_BYPASS
  const size_t c = (bytes - 1) / kAlignment;
  if (c < detail::kSmallClasses) [[likely]] {
    detail::ThreadCache& cache = detail::t_cache;
    if (cache.room[c] != 0) [[likely]] {
      --cache.room[c];
      auto* free_block = static_cast<detail::FreeBlock*>(block);
      free_block->next = cache.head[c];
      cache.head[c] = free_block;
      cache.allocated.add(-static_cast<int64_t>((c + 1) * kAlignment));
      cache.frees.add(1);
      return;
    }
  }
#endif
  detail::deallocate_slow(block, bytes);
}

}  // namespace lamina::memory
