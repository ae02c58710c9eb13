#include "lamina/border/trace_stream.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

#include "lamina/border/trace_read.h"

namespace lamina::border::trace {

int64_t nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

namespace {
// Whether the processor's counter runs at one speed on all cores.
bool has_steady_counter() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
#else
  return false;
#endif
}
const bool g_counter = has_steady_counter();
}  // namespace

int64_t ticks() {
#if defined(__x86_64__)
  if (g_counter) [[likely]]
    return static_cast<int64_t>(__rdtsc());
#endif
  return nanoseconds();
}

namespace {
constexpr size_t kChunk = size_t{1} << 20;

// Chunks that are done with serve the next trace: their pages are there already.
struct Spare {
  static constexpr size_t kMost = 16;
  std::mutex mutex;
  std::vector<char*> chunks;
};
Spare& spare() {
  static auto* s = new Spare;  // outlives threads that end late
  return *s;
}

char* new_chunk(size_t size) {
  if (size == kChunk) {
    const std::lock_guard lock(spare().mutex);
    if (auto& list = spare().chunks; !list.empty()) {
      char* chunk = list.back();
      list.pop_back();
      return chunk;
    }
  }
#if defined(__linux__)
  // All pages at once: a page fault in every tenth event would be seen in what is measured.
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
#else
  void* memory = std::malloc(size);
  if (!memory) throw std::bad_alloc();
#endif
  return static_cast<char*>(memory);
}

void free_chunk(char* chunk, size_t size) {
  if (size == kChunk) {
    const std::lock_guard lock(spare().mutex);
    if (spare().chunks.size() < Spare::kMost) return spare().chunks.push_back(chunk);
  }
#if defined(__linux__)
  munmap(chunk, size);
#else
  std::free(chunk);
#endif
}
}  // namespace

void Stream::grow(size_t at_least) {
  const size_t size = std::max(kChunk, (at_least + 4095) & ~size_t{4095});
  chunks_.reserve(chunks_.size() + 1);
  char* chunk = new_chunk(size);
  if (!chunks_.empty()) chunks_.back().used = at_;
  chunks_.push_back({chunk, chunk, size});
  at_ = chunk;
  end_ = chunk + size;
}

Stream::~Stream() {
  for (const Chunk& c : chunks_) free_chunk(c.begin, c.size);
  // A thread that ends while it is listened to does not hold the GIL; its objects stay.
  if (Py_IsInitialized() && PyGILState_Check())
    for (PyObject* o : kept_) Py_DECREF(o);
}

void put_tensor(Stream& stream, Tag tag, const lamina::Tensor& t, std::string_view name) {
  const auto n = static_cast<size_t>(t.dim());
  const size_t named = tag == Tag::Saved ? name.size() + 1 : 0;
  auto* v = stream.put<TensorValue>(tag, 0, 2 * n * sizeof(int64_t) + named);
  v->dtype = static_cast<uint8_t>(t.dtype());
  v->ndim = static_cast<uint8_t>(n);
  v->requires_grad = t.requires_grad();
  v->has_bytes = !t.is_meta() && !t.keys().has(DispatchKey::Python);
  v->offset = t.storage_offset();
  v->data = v->has_bytes ? t.data() : nullptr;
  auto* numbers = reinterpret_cast<int64_t*>(v + 1);
  const int64_t* from = t.impl()->sizes_data();  // strides lie behind the sizes
  for (size_t i = 0; i < 2 * n; ++i) numbers[i] = from[i];
  if (named) {
    char* text = reinterpret_cast<char*>(numbers + 2 * n);
    std::memcpy(text, name.data(), name.size());
    text[name.size()] = 0;
  }
}

}  // namespace lamina::border::trace
