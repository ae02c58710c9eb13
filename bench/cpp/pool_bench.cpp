// The thread pool against OpenMP and oneTBB, on free cores and with other processes on all cores
// but one.
//   pool_bench [threads]
// Prints, for loops of several lengths, the median time of each variant over the time of one
// thread: 1.0 means that threads neither help nor hurt. Built with -fopenmp and -DLAMINA_BENCH_TBB
// -ltbb the other variants appear.
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "lamina/queue/parallel.h"

#if defined(LAMINA_BENCH_TBB)
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#endif
#if defined(_OPENMP)
#include <omp.h>
#endif

namespace {

std::vector<float> g_in, g_out;

void work(int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    float v = g_in[i];
    for (int k = 0; k < 8; ++k) v = v * v + 0.25f;
    g_out[i] = v;
  }
}

void serial(int64_t n, int64_t grain) {
  for (int64_t b = 0; b < n; b += grain) work(b, std::min(b + grain, n));
}
void own(int64_t n, int64_t grain) {
  lamina::queue::parallel_for(0, n, grain, [](int64_t begin, int64_t end) { work(begin, end); });
}
#if defined(_OPENMP)
void openmp_static(int64_t n, int64_t grain) {
#pragma omp parallel for schedule(static)
  for (int64_t b = 0; b < n; b += grain) work(b, std::min(b + grain, n));
}
void openmp_dynamic(int64_t n, int64_t grain) {
#pragma omp parallel for schedule(dynamic, 1)
  for (int64_t b = 0; b < n; b += grain) work(b, std::min(b + grain, n));
}
#endif
#if defined(LAMINA_BENCH_TBB)
void onetbb(int64_t n, int64_t grain) {
  tbb::parallel_for(
      tbb::blocked_range<int64_t>(0, n, grain), [](const auto& r) { work(r.begin(), r.end()); },
      tbb::simple_partitioner());
}
#endif

struct Variant {
  const char* name;
  void (*run)(int64_t n, int64_t grain);
};

struct Times {
  double median, worst;
};

Times measure(void (*run)(int64_t, int64_t), int64_t n, int64_t grain) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int i = 0; i < 3; ++i) run(n, grain);
  const auto stop = Clock::now() + std::chrono::milliseconds(700);
  while (times.size() < 25 || Clock::now() < stop) {
    const auto start = Clock::now();
    run(n, grain);
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count() * 1e6);
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[times.size() * 99 / 100]};
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : lamina::queue::get_num_threads();
  lamina::queue::set_num_threads(threads);
  std::vector<Variant> variants{{"own", own}};
#if defined(_OPENMP)
  omp_set_num_threads(threads);
  variants.push_back({"openmp static", openmp_static});
  variants.push_back({"openmp dynamic", openmp_dynamic});
#endif
#if defined(LAMINA_BENCH_TBB)
  tbb::global_control control(tbb::global_control::max_allowed_parallelism, threads);
  variants.push_back({"onetbb", onetbb});
#endif
  g_in.assign(4 << 20, 0.1f);
  g_out.assign(4 << 20, 0.0f);
  for (const bool busy : {false, true}) {
    std::vector<pid_t> hogs;
    for (int i = 0; busy && i < threads - 1; ++i) {
      const pid_t pid = fork();
      if (pid == 0)
        for (;;) asm volatile("");
      hogs.push_back(pid);
    }
    std::printf("%s\n%10s %10s", busy ? "other processes on all cores but one" : "free cores",
                "elements", "serial us");
    for (const Variant& v : variants) std::printf(" %22s", v.name);
    std::printf("\n");
    for (int64_t n : {8 << 10, 32 << 10, 128 << 10, 1 << 20, 4 << 20}) {
      const int64_t grain = std::max<int64_t>(2048, n / 64);
      const Times one = measure(serial, n, grain);
      std::printf("%10ld %10.1f", static_cast<long>(n), one.median);
      for (const Variant& v : variants) {
        const Times t = measure(v.run, n, grain);
        std::printf("   %6.2f (99%%: %7.2f)", t.median / one.median, t.worst / one.median);
      }
      std::printf("\n");
      std::fflush(stdout);
    }
    for (const pid_t pid : hogs) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
}
