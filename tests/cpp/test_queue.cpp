#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include "lamina/core/error.h"
#include "lamina/queue/parallel.h"

namespace queue = lamina::queue;

namespace {

struct ThreadsGuard {
  explicit ThreadsGuard(int n) : before(queue::get_num_threads()) { queue::set_num_threads(n); }
  ~ThreadsGuard() { queue::set_num_threads(before); }
  int before;
};

int64_t sum_of(int64_t n, int64_t grain) {
  std::atomic<int64_t> sum{0};
  queue::parallel_for(0, n, grain, [&](int64_t b, int64_t e) {
    int64_t s = 0;
    for (int64_t i = b; i < e; ++i) s += i;
    sum += s;
  });
  return sum;
}

TEST(ParallelFor, EveryIterationOnceInChunksOfGrain) {
  for (int threads : {1, 2, 7}) {
    ThreadsGuard guard(threads);
    for (int64_t n : {0, 1, 5, 64, 1000}) {
      for (int64_t grain : {1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> seen(n);
        std::atomic<int> wrong{0};
        queue::parallel_for(10, 10 + n, grain, [&](int64_t b, int64_t e) {
          if ((b - 10) % grain != 0 || (e - b != grain && e != 10 + n) || e <= b) ++wrong;
          for (int64_t i = b; i < e; ++i) ++seen[i - 10];
        });
        EXPECT_EQ(wrong, 0);
        for (auto& s : seen) ASSERT_EQ(s, 1);
      }
    }
  }
}

TEST(ParallelFor, RangesAtTheEdgeOfInt64) {
  ThreadsGuard guard(3);
  std::atomic<int> calls{0};
  queue::parallel_for(INT64_MIN, INT64_MAX, INT64_MAX, [&](int64_t, int64_t) { ++calls; });
  EXPECT_EQ(calls, 3);
  calls = 0;
  queue::parallel_for(INT64_MAX - 5, INT64_MAX, 2, [&](int64_t b, int64_t e) { calls += e > b; });
  EXPECT_EQ(calls, 3);
  queue::parallel_for(5, 2, 1, [&](int64_t, int64_t) { FAIL(); });
  calls = 0;
  queue::parallel_for(0, 4, 0, [&](int64_t b, int64_t e) { calls += e - b == 1; });
  EXPECT_EQ(calls, 4);
}

TEST(ParallelFor, FirstExceptionReachesTheCaller) {
  for (int threads : {1, 2, 7}) {
    ThreadsGuard guard(threads);
    for (int round = 0; round < 50; ++round) {
      EXPECT_THROW(queue::parallel_for(0, 1000, 1,
                                       [&](int64_t b, int64_t) {
                                         if (b % 100 == 50) throw std::runtime_error("chunk");
                                       }),
                   std::runtime_error);
      EXPECT_EQ(sum_of(100, 3), 4950);
    }
  }
}

TEST(ParallelFor, NestedLoopsRunSerially) {
  ThreadsGuard guard(4);
  std::atomic<int> inner{0};
  EXPECT_FALSE(queue::in_parallel_region());
  queue::parallel_for(0, 16, 1, [&](int64_t, int64_t) {
    EXPECT_TRUE(queue::in_parallel_region());
    const auto here = std::this_thread::get_id();
    queue::parallel_for(0, 16, 1, [&](int64_t, int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), here);
      ++inner;
    });
  });
  EXPECT_FALSE(queue::in_parallel_region());
  EXPECT_EQ(inner, 256);
}

TEST(ParallelFor, SeveralUserThreads) {
  ThreadsGuard guard(4);
  std::vector<std::thread> users;
  std::atomic<int> wrong{0};
  for (int u = 0; u < 4; ++u)
    users.emplace_back([&] {
      for (int i = 0; i < 300; ++i)
        if (sum_of(1000, 10) != 499500) ++wrong;
    });
  for (auto& u : users) u.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ParallelFor, ThreadCountMayChangeBetweenLoops) {
  const int before = queue::get_num_threads();
  for (int i = 0; i < 500; ++i) {
    const int n = 1 + i % 9;
    queue::set_num_threads(n);
    std::atomic<int> highest{0};
    queue::parallel_for(0, 64, 1, [&](int64_t, int64_t) {
      int h = highest;
      while (queue::thread_index() > h &&
             !highest.compare_exchange_weak(h, queue::thread_index())) {
      }
    });
    EXPECT_LT(highest, n);
  }
  queue::set_num_threads(before);
  EXPECT_THROW(queue::set_num_threads(0), lamina::Error);
  EXPECT_THROW(queue::set_num_threads(-3), lamina::Error);
  queue::set_num_threads(1 << 30);
  EXPECT_EQ(queue::get_num_threads(), queue::kMaxThreads);
  queue::set_num_threads(before);
}

#if !defined(__SANITIZE_THREAD__)
TEST(ParallelFor, WorksInAForkedChild) {
  ThreadsGuard guard(4);
  EXPECT_EQ(sum_of(1000, 1), 499500);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(sum_of(1000, 1) == 499500 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(sum_of(1000, 1), 499500);
}
#endif

TEST(ParallelFor, ManyShortLoops) {
  ThreadsGuard guard(2);
  for (int i = 0; i < 20000; ++i) ASSERT_EQ(sum_of(16, 4), 120);
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    ASSERT_EQ(sum_of(16, 4), 120);
  }
}

}  // namespace
