// The one parallel loop. Work is cut into chunks of exactly `grain` iterations, whatever the number
// of threads, so a kernel that keeps one result per chunk computes the same bits on any machine.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace lamina::queue {

inline constexpr int kMaxThreads = 1024;

// Threads that a parallel loop may use, the calling one included. Starts as LAMINA_NUM_THREADS,
// OMP_NUM_THREADS or the number of cores this process may run on. set_num_threads raises for n < 1
// and caps n at kMaxThreads.
void set_num_threads(int n);
int get_num_threads();

// True inside the body of a parallel loop; loops started there run serially.
bool in_parallel_region();

// 0 on threads that are no worker of the pool, 1, 2, ... on workers; below kMaxThreads.
int thread_index();

namespace detail {
using ChunkFunction = void (*)(void* context, int64_t begin, int64_t end);
void run_chunks(int64_t begin, int64_t end, int64_t grain, ChunkFunction function, void* context);
}  // namespace detail

// Calls f(b, e) once for every chunk [begin + i * grain, min(begin + (i + 1) * grain, end)), in any
// order and on any thread; returns when all are done. The chunks depend on grain alone (a grain
// below 1 counts as 1). The first exception that f throws ends the loop early and is thrown here.
// May be called from several threads and from f.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& f) {
  if (begin >= end) return;
  if (grain < 1) grain = 1;
  // Unsigned, so that a range of nearly 2^64 does not overflow.
  if (static_cast<uint64_t>(end) - static_cast<uint64_t>(begin) <= static_cast<uint64_t>(grain)) {
    f(begin, end);
    return;
  }
  using Body = std::remove_reference_t<F>;
  detail::run_chunks(
      begin, end, grain,
      [](void* context, int64_t b, int64_t e) { (*static_cast<Body*>(context))(b, e); },
      const_cast<void*>(static_cast<const void*>(std::addressof(f))));
}

}  // namespace lamina::queue
