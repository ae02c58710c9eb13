// The thread pool. Chunks are claimed from one atomic word; the calling thread claims too, so a
// loop never waits for a worker that has claimed nothing. It takes the first that is left, workers
// take the last: in the next loop over the same memory each finds its own part in its caches. See
// docs/decisions/0004-thread-pool.md for what was measured.
#include "lamina/queue/parallel.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <mutex>
#include <utility>

#include "lamina/core/error.h"
#include "lamina/event/event.h"

namespace lamina::queue {
namespace {

// Of the word: how many chunks are unclaimed, which is the first of them, how many threads take
// part.
constexpr int kCountBits = 24, kLimitShift = 2 * kCountBits;
constexpr uint64_t kCountMask = (uint64_t{1} << kCountBits) - 1;
constexpr int kWorkerSpins = 600;   // pauses of an idle worker: 5 to 20 us
constexpr int kWorkerYields = 150;  // then offers of its core to others, before it sleeps: 50 us
constexpr int kCallerSpins = 1500;  // a chunk takes about as long: 15 us

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

struct alignas(64) Worker {
  std::atomic<uint32_t> sleeping{0};
};

// One per process; a forked child gets a new one. Never destroyed: workers may outlive every static
// object.
struct Pool {
  // Chunks of the current loop that nobody has claimed, and how many threads may take part. Only a
  // successful claim entitles to read the fields of the loop, which change when every claimed chunk
  // is done.
  alignas(64) std::atomic<uint64_t> ticket{0};
  alignas(64) std::atomic<int64_t> pending{0};  // chunks not yet done
  std::atomic<uint32_t> done{0};                // 0 running, 1 done, 2 the caller sleeps
  alignas(64) std::atomic<bool> busy{false};    // a loop owns the pool

  int64_t begin = 0, end = 0, grain = 0;
  uint64_t chunks = 0;
  detail::ChunkFunction function = nullptr;
  void* context = nullptr;
  std::mutex error_mutex;
  std::exception_ptr error;

  int started = 1;  // threads, the caller included; changed by the owner of `busy`
  Worker* workers[kMaxThreads] = {};
};

std::atomic<Pool*> g_pool{nullptr};
std::mutex g_start_mutex;
std::atomic<int> g_num_threads{0};  // 0: not asked yet

constinit thread_local bool t_in_region = false;
constinit thread_local int t_index = 0;

uint64_t remaining_of(uint64_t ticket) { return ticket & kCountMask; }
uint64_t first_of(uint64_t ticket) { return ticket >> kCountBits & kCountMask; }
int limit_of(uint64_t ticket) { return static_cast<int>(ticket >> kLimitShift); }

// Claims and runs chunks until none is left; returns how many it settled.
int64_t work(Pool& pool, int index) {
  int64_t settled = 0;
  uint64_t t = pool.ticket.load(std::memory_order_acquire);
  while (remaining_of(t) != 0 && index < limit_of(t)) {
    const bool front = index == 0;
    const uint64_t claimed = t - 1 + (front ? uint64_t{1} << kCountBits : 0);
    if (!pool.ticket.compare_exchange_weak(t, claimed, std::memory_order_acq_rel,
                                           std::memory_order_acquire))
      continue;
    const auto chunk =
        static_cast<int64_t>(front ? first_of(t) : first_of(t) + remaining_of(t) - 1);
    ++settled;
    const auto b =
        static_cast<int64_t>(static_cast<uint64_t>(pool.begin) +
                             static_cast<uint64_t>(chunk) * static_cast<uint64_t>(pool.grain));
    const int64_t e = chunk + 1 == static_cast<int64_t>(pool.chunks) ? pool.end : b + pool.grain;
    try {
      pool.function(pool.context, b, e);
    } catch (...) {
      {
        std::lock_guard lock(pool.error_mutex);
        if (!pool.error) pool.error = std::current_exception();
      }
      settled +=
          static_cast<int64_t>(remaining_of(pool.ticket.exchange(0, std::memory_order_acq_rel)));
    }
    t = pool.ticket.load(std::memory_order_acquire);
  }
  return settled;
}

void wake(Pool& pool, int index) {
  Worker& w = *pool.workers[index];
  if (w.sleeping.load(std::memory_order_seq_cst) == 1 &&
      w.sleeping.exchange(0, std::memory_order_seq_cst) == 1)
    futex_wake(w.sleeping);
}

// Thread i wakes threads 2i+1 and 2i+2, so that waking many takes a logarithm of steps.
void wake_children(Pool& pool, int index, int count) {
  for (int child = 2 * index + 1; child <= 2 * index + 2 && child < count; ++child)
    wake(pool, child);
}

struct WorkerStart {
  Pool* pool;
  int index;
};

void worker_main(Pool& pool, int index) {
  t_index = index;
  t_in_region = true;
  Worker& self = *pool.workers[index];
  int spins = 0;
  for (;;) {
    const uint64_t t = pool.ticket.load(std::memory_order_seq_cst);
    if (remaining_of(t) != 0 && index < limit_of(t)) {
      wake_children(pool, index,
                    static_cast<int>(std::min<uint64_t>(limit_of(t), remaining_of(t) + index + 1)));
      const int64_t settled = work(pool, index);
      if (settled != 0 && pool.pending.fetch_sub(settled, std::memory_order_acq_rel) == settled &&
          pool.done.exchange(1, std::memory_order_acq_rel) == 2)
        futex_wake(pool.done);
      spins = 0;
      continue;
    }
    if (++spins < kWorkerSpins) {
      pause();
      continue;
    }
    // Calls that follow each other closely find the worker awake; a process that wants the core has
    // it at once.
    if (spins < kWorkerSpins + kWorkerYields) {
      sched_yield();
      continue;
    }
    spins = 0;
    self.sleeping.store(1, std::memory_order_seq_cst);
    const uint64_t again = pool.ticket.load(std::memory_order_seq_cst);
    if (remaining_of(again) != 0 && index < limit_of(again)) {
      self.sleeping.store(0, std::memory_order_seq_cst);
      continue;
    }
    while (self.sleeping.load(std::memory_order_acquire) == 1) futex_wait(self.sleeping, 1);
  }
}

void* worker_entry(void* argument) {
  const WorkerStart start = *static_cast<WorkerStart*>(argument);
  delete static_cast<WorkerStart*>(argument);
  worker_main(*start.pool, start.index);
  return nullptr;
}

// Starts workers until `count` threads exist or the system refuses. The caller owns the pool.
void start_workers(Pool& pool, int count) {
  // Signals belong to the program's own threads.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  while (pool.started < count) {
    const int index = pool.started;
    pool.workers[index] = new Worker;
    auto* start = new WorkerStart{&pool, index};
    pthread_t thread;
    if (pthread_create(&thread, &attributes, worker_entry, start) != 0) {
      delete start;
      delete pool.workers[index];
      pool.workers[index] = nullptr;
      break;
    }
#if defined(__GLIBC__)
    pthread_setname_np(thread, "lamina-worker");
#endif
    ++pool.started;
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

// The threads of a parent do not exist in its child: the child starts over with a pool of its own.
void before_fork() { g_start_mutex.lock(); }
void after_fork_in_parent() { g_start_mutex.unlock(); }
void after_fork_in_child() {
  g_pool.store(nullptr, std::memory_order_relaxed);
  t_index = 0;
  t_in_region = false;
  g_start_mutex.unlock();
}

Pool& pool() {
  if (Pool* p = g_pool.load(std::memory_order_acquire)) return *p;
  std::lock_guard lock(g_start_mutex);
  if (Pool* p = g_pool.load(std::memory_order_acquire)) return *p;
  static const int registered =
      pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  (void)registered;
  auto* p = new Pool;
  g_pool.store(p, std::memory_order_release);
  return *p;
}

int threads_from(const char* variable) {
  const char* text = std::getenv(variable);
  if (!text) return 0;
  char* end = nullptr;
  const long n = std::strtol(text, &end, 10);
  return end == text || n < 1 ? 0 : static_cast<int>(std::min<long>(n, kMaxThreads));
}

int default_threads() {
  if (int n = threads_from("LAMINA_NUM_THREADS")) return n;
  if (int n = threads_from("OMP_NUM_THREADS")) return n;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return std::clamp(CPU_COUNT(&set), 1, kMaxThreads);
  return static_cast<int>(std::clamp<long>(sysconf(_SC_NPROCESSORS_ONLN), 1, kMaxThreads));
}

struct RegionGuard {
  RegionGuard() : before(t_in_region) { t_in_region = true; }
  ~RegionGuard() { t_in_region = before; }
  bool before;
};

void run_serially(int64_t begin, int64_t end, int64_t grain, detail::ChunkFunction function,
                  void* context) {
  RegionGuard region;
  for (int64_t b = begin;;) {
    if (static_cast<uint64_t>(end) - static_cast<uint64_t>(b) <= static_cast<uint64_t>(grain)) {
      function(context, b, end);
      return;
    }
    function(context, b, b + grain);
    b += grain;
  }
}

}  // namespace

int get_num_threads() {
  int n = g_num_threads.load(std::memory_order_relaxed);
  if (n == 0) {
    n = default_threads();
    int expected = 0;
    if (!g_num_threads.compare_exchange_strong(expected, n, std::memory_order_relaxed))
      n = expected;
  }
  return n;
}

void set_num_threads(int n) {
  LAMINA_CHECK(n >= 1, "set_num_threads: the number of threads must be positive; got ", n);
  g_num_threads.store(std::min(n, kMaxThreads), std::memory_order_relaxed);
}

bool in_parallel_region() { return t_in_region; }
int thread_index() { return t_index; }

void detail::run_chunks(int64_t begin, int64_t end, int64_t grain, ChunkFunction function,
                        void* context) {
  const uint64_t length = static_cast<uint64_t>(end) - static_cast<uint64_t>(begin);
  const uint64_t chunks = (length - 1) / static_cast<uint64_t>(grain) + 1;
  const int threads =
      static_cast<int>(std::min<uint64_t>(static_cast<uint64_t>(get_num_threads()), chunks));
  const event::Loop heard(static_cast<int64_t>(chunks), threads);
  if (threads <= 1 || t_in_region || chunks > kCountMask)
    return run_serially(begin, end, grain, function, context);
  Pool& p = pool();
  // Another thread's loop has the pool: its workers are busy, so this loop is better off alone.
  if (p.busy.exchange(true, std::memory_order_acquire))
    return run_serially(begin, end, grain, function, context);
  if (p.started < threads) start_workers(p, threads);
  const int limit = std::min(threads, p.started);

  p.begin = begin;
  p.end = end;
  p.grain = grain;
  p.chunks = chunks;
  p.function = function;
  p.context = context;
  p.pending.store(static_cast<int64_t>(chunks), std::memory_order_relaxed);
  p.done.store(0, std::memory_order_relaxed);
  p.ticket.store(chunks | static_cast<uint64_t>(limit) << kLimitShift, std::memory_order_seq_cst);
  wake_children(p, 0, limit);
  int64_t settled;
  {
    RegionGuard region;
    settled = work(p, 0);
  }
  if (p.pending.fetch_sub(settled, std::memory_order_acq_rel) != settled) {
    for (int i = 0; i < kCallerSpins && p.done.load(std::memory_order_acquire) != 1; ++i) pause();
    // Asleep, the caller leaves its core to the worker that it waits for.
    uint32_t expected = 0;
    if (p.done.compare_exchange_strong(expected, 2, std::memory_order_acq_rel))
      while (p.done.load(std::memory_order_acquire) != 1) futex_wait(p.done, 2);
  }
  std::exception_ptr error;
  if (p.error) [[unlikely]]
    error = std::exchange(p.error, nullptr);
  p.busy.store(false, std::memory_order_release);
  if (error) [[unlikely]]
    std::rethrow_exception(error);
}

}  // namespace lamina::queue
