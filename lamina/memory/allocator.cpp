// The CPU allocator behind the inlined paths of allocator.h. All shared state is
// constant-initialized and never destroyed, so blocks can be freed by any destructor of the
// process.
#include "lamina/memory/allocator.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "lamina/core/error.h"

namespace lamina::memory {
namespace detail {
constinit thread_local ThreadCache t_cache;
}

namespace {
using detail::FreeBlock;
using detail::kSmallClasses;
using detail::t_cache;
using detail::ThreadCache;

constexpr size_t kSlabBytes = 64 * 1024;
constexpr size_t kHugePage = 2 * 1024 * 1024;
constexpr int kSubclasses = 8;  // size classes per doubling: at most 12.5 % of a block is waste
constexpr int kLargeClasses = (48 - 10) * kSubclasses;

// What a cached large block holds while nobody uses it.
struct CachedBlock {
  CachedBlock *next, *previous;  // of its class, newest first
  CachedBlock *newer, *older;    // of all
  size_t capacity;
  int size_class;
};

struct State {
  std::mutex mutex;
  FreeBlock* small[kSmallClasses] = {};
  CachedBlock* large[kLargeClasses] = {};
  CachedBlock* newest = nullptr;
  CachedBlock* oldest = nullptr;
  ThreadCache* threads = nullptr;

  int64_t allocated = 0, peak_allocated = 0;
  int64_t reserved = 0, peak_reserved = 0;
  int64_t cached = 0;
  int64_t allocations = 0, frees = 0, cache_hits = 0, out_of_memory = 0;
  int64_t limit = kNoLimit;
  int64_t cache_bound = -1;  // -1: not computed yet
  int64_t physical = -1;
  bool prepared = false;
  pthread_key_t key = 0;
};
constinit State g;
constinit thread_local bool t_reserved = false;  // the system was asked, since this was cleared

// Bytes of memory that this process may hope for.
int64_t physical_memory() {
  if (g.physical < 0) {
    const int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    g.physical = pages > 0 && page > 0 ? pages * page : kNoLimit;
    if (FILE* file = std::fopen("/sys/fs/cgroup/memory.max", "re")) {
      long long bound = 0;
      if (std::fscanf(file, "%lld", &bound) == 1 && bound > 0)
        g.physical = std::min<int64_t>(g.physical, bound);
      std::fclose(file);
    }
  }
  return g.physical;
}

int64_t cache_bound() {
  if (g.cache_bound < 0) g.cache_bound = std::max<int64_t>(physical_memory() / 8, 64 << 20);
  return g.cache_bound;
}

struct SizeClass {
  int index;
  size_t capacity;
};

// For bytes in (kSmallLimit, 2^47].
SizeClass large_class(size_t bytes) {
  const int log = std::bit_width(bytes - 1) - 1;  // bytes in (2^log, 2^(log+1)]
  const size_t step = (size_t{1} << log) / kSubclasses;
  const size_t sub = (bytes - (size_t{1} << log) + step - 1) / step;  // 1 .. kSubclasses
  return {(log - 10) * kSubclasses + static_cast<int>(sub) - 1, (size_t{1} << log) + sub * step};
}

void fold_counters(ThreadCache& cache) {
  g.peak_allocated = std::max(g.peak_allocated, g.allocated + cache.high.get());
  g.allocated += cache.allocated.get();
  g.allocations += cache.allocations.get();
  g.frees += cache.frees.get();
  cache.allocated.set(0);
  cache.high.set(0);
  cache.allocations.set(0);
  cache.frees.set(0);
}

void count_allocation(int64_t bytes) {
  g.allocated += bytes;
  g.peak_allocated = std::max(g.peak_allocated, g.allocated);
  ++g.allocations;
}

void count_reserved(int64_t bytes) {
  g.reserved += bytes;
  g.peak_reserved = std::max(g.peak_reserved, g.reserved);
}

std::string readable(int64_t bytes) {
  static constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 6; ++unit) value /= 1024;
  char text[48];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.2f %s", value, kUnits[unit]);
  return text;
}

[[noreturn]] void raise_out_of_memory(size_t bytes, const char* why) {
  ++g.out_of_memory;
  const int64_t others = g.reserved - g.allocated - g.cached;
  raise(ErrorKind::OutOfMemory,
        str("allocate: not enough memory on cpu: tried to allocate ", bytes, " bytes (",
            bytes > size_t{INT64_MAX} ? std::string("more than any machine has")
                                      : readable(static_cast<int64_t>(bytes)),
            "): ", why, "; held by tensors: ", readable(g.allocated), ", cached: ",
            readable(g.cached), ", in small-block lists: ", readable(std::max<int64_t>(others, 0)),
            ", limit: ", g.limit == kNoLimit ? std::string("none") : readable(g.limit),
            ", memory of the machine: ", readable(physical_memory())));
}

void unlink(CachedBlock* block) {
  (block->previous ? block->previous->next : g.large[block->size_class]) = block->next;
  if (block->next) block->next->previous = block->previous;
  (block->newer ? block->newer->older : g.newest) = block->older;
  (block->older ? block->older->newer : g.oldest) = block->newer;
  g.cached -= static_cast<int64_t>(block->capacity);
}

// --- memory of the system
// ------------------------------------------------------------------------------------------

void* system_allocate(size_t capacity) {
  if (capacity < kHugePage) return std::aligned_alloc(kAlignment, capacity);
  // Aligned to huge pages, which cost one fault where small ones cost 512.
  const size_t total = capacity + kHugePage;
  void* base = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  const auto start = reinterpret_cast<uintptr_t>(base);
  const uintptr_t aligned = (start + kHugePage - 1) & ~uintptr_t{kHugePage - 1};
  if (aligned != start) munmap(base, aligned - start);
  munmap(reinterpret_cast<void*>(aligned + capacity), start + total - aligned - capacity);
  void* block = reinterpret_cast<void*>(aligned);
  madvise(block, capacity, MADV_HUGEPAGE);
  return block;
}

void system_free(void* block, size_t capacity) noexcept {
  if (capacity < kHugePage)
    std::free(block);
  else
    munmap(block, capacity);
  g.reserved -= static_cast<int64_t>(capacity);
}

void trim_cache(int64_t bound) {
  while (g.oldest && g.cached > bound) {
    CachedBlock* block = g.oldest;
    unlink(block);
    system_free(block, block->capacity);
  }
}

// New memory within the limit; the cache is given up before the request is.
void* reserve(size_t capacity, size_t asked) {
  const auto size = static_cast<int64_t>(capacity);
  if (size > g.limit || g.reserved > g.limit - size) {
    trim_cache(0);
    if (size > g.limit || g.reserved > g.limit - size)
      raise_out_of_memory(asked, "the limit set for this device would be exceeded");
  }
  void* block = system_allocate(capacity);
  if (!block) {
    trim_cache(0);
    block = system_allocate(capacity);
    if (!block) raise_out_of_memory(asked, "the system has no memory left");
  }
  count_reserved(size);
  t_reserved = true;
  return block;
}

// --- threads and forks
// -----------------------------------------------------------------------------------------------

void flush_small(ThreadCache& cache, int c, int keep) {
  FreeBlock** tail = &cache.head[c];
  for (int i = 0; i < keep && *tail; ++i) tail = &(*tail)->next;
  FreeBlock* rest = *tail;
  *tail = nullptr;
  if (!rest) return;
  FreeBlock* last = rest;
  int moved = 1;
  for (; last->next; last = last->next) ++moved;
  last->next = g.small[c];
  g.small[c] = rest;
  cache.room[c] = static_cast<uint16_t>(cache.room[c] + moved);
}

void retire(ThreadCache& cache) {
  fold_counters(cache);
  for (int c = 0; c < kSmallClasses; ++c) {
    flush_small(cache, c, 0);
    cache.room[c] = 0;
  }
  cache.registered = false;
}

void at_thread_exit(void* argument) {
  auto* cache = static_cast<ThreadCache*>(argument);
  std::lock_guard lock(g.mutex);
  for (ThreadCache** p = &g.threads; *p; p = &(*p)->next_thread)
    if (*p == cache) {
      *p = cache->next_thread;
      break;
    }
  retire(*cache);
}

void before_fork() { g.mutex.lock(); }
void after_fork_in_parent() { g.mutex.unlock(); }
void after_fork_in_child() {
  // Only the forking thread lives on; what the lists of the others hold becomes common.
  for (ThreadCache* cache = g.threads; cache;) {
    ThreadCache* next = cache->next_thread;
    if (cache != &t_cache) retire(*cache);
    cache = next;
  }
  g.threads = t_cache.registered ? &t_cache : nullptr;
  t_cache.next_thread = nullptr;
  g.mutex.unlock();
}

constexpr int list_bound(int c) {  // blocks a thread's list keeps: 64 KiB of them, at most 256
  return std::clamp<int>(static_cast<int>(kSlabBytes / ((c + 1) * kAlignment)), 64, 256);
}

// Called with the mutex held.
void prepare_thread() {
  if (!g.prepared) [[unlikely]] {
    g.prepared = true;
    pthread_key_create(&g.key, at_thread_exit);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  }
  ThreadCache& cache = t_cache;
  if (!cache.registered) [[unlikely]] {
    cache.registered = true;
    pthread_setspecific(g.key, &cache);
    cache.next_thread = g.threads;
    g.threads = &cache;
    if (!LAMINA_MEMORY_BYPASS)
      for (int c = 0; c < kSmallClasses; ++c) cache.room[c] = static_cast<uint16_t>(list_bound(c));
  }
  fold_counters(cache);
}

// Hands out one block and fills the thread's list with up to half of what it keeps.
void* refill_small(int c, size_t bytes) {
  ThreadCache& cache = t_cache;
  const size_t size = (c + 1) * kAlignment;
  if (!g.small[c]) {
    auto* slab = static_cast<char*>(reserve(kSlabBytes, bytes));
    for (size_t offset = (kSlabBytes / size) * size; offset != 0;) {
      offset -= size;
      auto* block = reinterpret_cast<FreeBlock*>(slab + offset);
      block->next = g.small[c];
      g.small[c] = block;
    }
  }
  FreeBlock* result = g.small[c];
  g.small[c] = result->next;
  for (int i = list_bound(c) / 2; i > 0 && g.small[c] && cache.room[c] > 0; --i) {
    FreeBlock* block = g.small[c];
    g.small[c] = block->next;
    block->next = cache.head[c];
    cache.head[c] = block;
    --cache.room[c];
  }
  count_allocation(static_cast<int64_t>(size));
  return result;
}

void* allocate_large(size_t bytes) {
  const SizeClass c = large_class(bytes);
  if (CachedBlock* block = g.large[c.index]) {
    unlink(block);
    ++g.cache_hits;
    count_allocation(static_cast<int64_t>(c.capacity));
    return block;
  }
  void* block = reserve(c.capacity, bytes);
  count_allocation(static_cast<int64_t>(c.capacity));
  return block;
}

void deallocate_large(void* memory, size_t bytes) noexcept {
  const SizeClass c = large_class(bytes);
  const auto capacity = static_cast<int64_t>(c.capacity);
  g.allocated -= capacity;
  ++g.frees;
  if (capacity > cache_bound() || g.reserved > g.limit) {
    system_free(memory, c.capacity);
    return;
  }
  auto* block = static_cast<CachedBlock*>(memory);
  block->capacity = c.capacity;
  block->size_class = c.index;
  block->previous = nullptr;
  block->next = g.large[c.index];
  if (block->next) block->next->previous = block;
  g.large[c.index] = block;
  block->newer = nullptr;
  block->older = g.newest;
  (g.newest ? g.newest->newer : g.oldest) = block;
  g.newest = block;
  g.cached += capacity;
  trim_cache(cache_bound());
}

// Every block apart, so that a sanitizer sees its whole life.
[[maybe_unused]] void* allocate_apart(size_t bytes) {
  const auto size = static_cast<int64_t>(bytes);
  if (size > g.limit || g.reserved > g.limit - size)
    raise_out_of_memory(bytes, "the limit set for this device would be exceeded");
  void* block = ::operator new(bytes, std::align_val_t{kAlignment}, std::nothrow);
  if (!block) raise_out_of_memory(bytes, "the system has no memory left");
  t_reserved = true;
  count_reserved(size);
  count_allocation(size);
  return block;
}

[[maybe_unused]] void deallocate_apart(void* block, size_t bytes) noexcept {
  ::operator delete(block, std::align_val_t{kAlignment});
  g.reserved -= static_cast<int64_t>(bytes);
  g.allocated -= static_cast<int64_t>(bytes);
  ++g.frees;
}

class CpuAllocator final : public Allocator {
 public:
  void* allocate(size_t bytes) override { return cpu_allocate(bytes); }
  void deallocate(void* block, size_t bytes) noexcept override {
    if (block) cpu_deallocate(block, bytes);
  }
  Statistics statistics() const override {
    std::lock_guard lock(g.mutex);
    Statistics s;
    s.allocated = g.allocated;
    int64_t high = g.allocated;
    s.allocations = g.allocations;
    s.frees = g.frees;
    for (const ThreadCache* t = g.threads; t; t = t->next_thread) {
      s.allocated += t->allocated.get();
      high += t->high.get();
      s.allocations += t->allocations.get();
      s.frees += t->frees.get();
    }
    s.peak_allocated = std::max({g.peak_allocated, high, s.allocated});
    s.reserved = g.reserved;
    s.peak_reserved = g.peak_reserved;
    s.cached = g.cached;
    s.cache_hits = g.cache_hits;
    s.out_of_memory = g.out_of_memory;
    return s;
  }
  void reset_peak() override {
    std::lock_guard lock(g.mutex);
    for (ThreadCache* t = g.threads; t; t = t->next_thread) t->high.set(t->allocated.get());
    int64_t allocated = g.allocated;
    for (ThreadCache* t = g.threads; t; t = t->next_thread) allocated += t->allocated.get();
    g.peak_allocated = allocated;
    g.peak_reserved = g.reserved;
  }
  void empty_cache() override {
    std::lock_guard lock(g.mutex);
    trim_cache(0);
  }
  void set_limit(int64_t bytes) override {
    LAMINA_CHECK_VALUE(bytes >= 0, "set_limit: the limit must not be negative; got ", bytes);
    std::lock_guard lock(g.mutex);
    g.limit = bytes;
  }
  int64_t limit() const override {
    std::lock_guard lock(g.mutex);
    return g.limit;
  }
};

}  // namespace

Allocator& cpu_allocator() {
  alignas(CpuAllocator) static unsigned char memory[sizeof(CpuAllocator)];
  static Allocator* const allocator = new (memory) CpuAllocator;  // never destroyed
  return *allocator;
}

void set_cpu_cache_bound(int64_t bytes) {
  LAMINA_CHECK_VALUE(bytes >= 0, "set_cpu_cache_bound: the bound must not be negative; got ",
                     bytes);
  std::lock_guard lock(g.mutex);
  g.cache_bound = bytes;
  trim_cache(bytes);
}

namespace {
// The listener steps aside, so that the usual way is gone unheard.
class Aside {
 public:
  Aside() : listener(std::exchange(event::t_listener, nullptr)) { listener->on_allocator(); }
  ~Aside() { event::t_listener = listener; }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  event::Listener* const listener;
};
}  // namespace

void* detail::allocate_heard(size_t bytes) {
  const Aside aside;
  t_reserved = false;
  void* block = cpu_allocate(bytes);
  aside.listener->on_memory(block, static_cast<int64_t>(bytes), !t_reserved);
  return block;
}

void detail::deallocate_heard(void* block, size_t bytes) noexcept {
  const Aside aside;
  cpu_deallocate(block, bytes);
  aside.listener->on_memory(block, -static_cast<int64_t>(bytes), false);
}

void* detail::allocate_slow(size_t bytes) {
  if (bytes == 0) return nullptr;
  std::lock_guard lock(g.mutex);
  prepare_thread();
  if (bytes > static_cast<size_t>(physical_memory()))
    raise_out_of_memory(bytes, "that is more than this machine has");
  if (LAMINA_MEMORY_BYPASS) return allocate_apart(bytes);
  if (bytes <= kSmallLimit) return refill_small(static_cast<int>((bytes - 1) / kAlignment), bytes);
  return allocate_large(bytes);
}

void detail::deallocate_slow(void* block, size_t bytes) noexcept {
  if (!block || bytes == 0) return;
  std::lock_guard lock(g.mutex);
  prepare_thread();
  if (LAMINA_MEMORY_BYPASS) return deallocate_apart(block, bytes);
  if (bytes > kSmallLimit) return deallocate_large(block, bytes);
  const int c = static_cast<int>((bytes - 1) / kAlignment);
  ThreadCache& cache = t_cache;
  if (cache.room[c] == 0) flush_small(cache, c, list_bound(c) / 2);
  auto* free_block = static_cast<FreeBlock*>(block);
  free_block->next = cache.head[c];
  cache.head[c] = free_block;
  --cache.room[c];
  g.allocated -= static_cast<int64_t>((c + 1) * kAlignment);
  ++g.frees;
}

}  // namespace lamina::memory
