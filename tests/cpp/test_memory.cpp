#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lamina/core/error.h"
#include "lamina/memory/allocator.h"

namespace memory = lamina::memory;

namespace {

memory::Allocator& cpu() { return memory::cpu_allocator(); }

TEST(CpuAllocator, BlocksAreAlignedAndApart) {
  std::mt19937 random(1);
  std::vector<std::pair<unsigned char*, size_t>> blocks;
  for (size_t bytes : {1u, 63u, 64u, 65u, 1000u, 1024u, 1025u, 4096u, 100000u, 1u << 20,
                       (2u << 20) + 1, 5u << 20}) {
    for (int i = 0; i < 20; ++i) {
      auto* p = static_cast<unsigned char*>(cpu().allocate(bytes));
      ASSERT_EQ(reinterpret_cast<uintptr_t>(p) % memory::kAlignment, 0u);
      std::memset(p, static_cast<int>(blocks.size() % 251), bytes);
      blocks.emplace_back(p, bytes);
    }
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto expected = static_cast<unsigned char>(i % 251);
    ASSERT_EQ(blocks[i].first[0], expected);
    ASSERT_EQ(blocks[i].first[blocks[i].second - 1], expected);
  }
  std::shuffle(blocks.begin(), blocks.end(), random);
  for (auto& [p, bytes] : blocks) cpu().deallocate(p, bytes);
}

TEST(CpuAllocator, ZeroBytes) {
  EXPECT_EQ(cpu().allocate(0), nullptr);
  cpu().deallocate(nullptr, 0);
  cpu().deallocate(nullptr, 100);
}

TEST(CpuAllocator, Statistics) {
  cpu().reset_peak();
  const auto before = cpu().statistics();
  void* a = cpu().allocate(100);
  void* b = cpu().allocate(1 << 20);
  auto now = cpu().statistics();
  EXPECT_GE(now.allocated - before.allocated, 100 + (1 << 20));
  EXPECT_EQ(now.allocations - before.allocations, 2);
  EXPECT_GE(now.reserved, now.allocated);
  cpu().deallocate(b, 1 << 20);
  cpu().deallocate(a, 100);
  now = cpu().statistics();
  EXPECT_EQ(now.allocated, before.allocated);
  EXPECT_EQ(now.frees - before.frees, 2);
  EXPECT_GE(now.peak_allocated - before.allocated, 100 + (1 << 20));
  cpu().reset_peak();
  EXPECT_EQ(cpu().statistics().peak_allocated, before.allocated);
}

TEST(CpuAllocator, SmallPeakIsExactOnOneThread) {
  cpu().reset_peak();
  const auto before = cpu().statistics().allocated;
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(cpu().allocate(64));
  for (void* p : blocks) cpu().deallocate(p, 64);
  EXPECT_EQ(cpu().statistics().peak_allocated - before, 64000);
}

#if !LAMINA_MEMORY_BYPASS
TEST(CpuAllocator, LargeBlocksAreReused) {
  cpu().empty_cache();
  void* a = cpu().allocate(16 << 20);
  std::memset(a, 1, 16 << 20);
  cpu().deallocate(a, 16 << 20);
  const auto hits = cpu().statistics().cache_hits;
  void* b = cpu().allocate(16 << 20);
  EXPECT_EQ(a, b);
  EXPECT_EQ(cpu().statistics().cache_hits, hits + 1);
  cpu().deallocate(b, 16 << 20);
  EXPECT_GE(cpu().statistics().cached, 16 << 20);
  cpu().empty_cache();
  EXPECT_EQ(cpu().statistics().cached, 0);
}

TEST(CpuAllocator, CacheIsBounded) {
  memory::set_cpu_cache_bound(8 << 20);
  std::vector<void*> blocks;
  for (int i = 0; i < 6; ++i) blocks.push_back(cpu().allocate(3 << 20));
  for (void* p : blocks) cpu().deallocate(p, 3 << 20);
  EXPECT_LE(cpu().statistics().cached, 8 << 20);
  memory::set_cpu_cache_bound(1 << 30);
}
#endif

TEST(CpuAllocator, LimitRaisesAndLeavesEverythingUsable) {
  void* kept = cpu().allocate(1 << 20);
  cpu().set_limit(cpu().statistics().reserved + (4 << 20));
  for (int i = 0; i < 3; ++i) {
    try {
      cpu().allocate(512 << 20);
      FAIL();
    } catch (const lamina::Error& e) {
      EXPECT_EQ(e.kind(), lamina::ErrorKind::OutOfMemory);
      const std::string text = e.what();
      for (const char* word : {"536870912 bytes", "512.00 MiB", "limit", "cached", "held"})
        EXPECT_NE(text.find(word), std::string::npos) << text;
    }
    void* p = cpu().allocate(2 << 20);
    std::memset(p, 0, 2 << 20);
    cpu().deallocate(p, 2 << 20);
  }
  cpu().set_limit(memory::kNoLimit);
  void* p = cpu().allocate(64 << 20);
  cpu().deallocate(p, 64 << 20);
  cpu().deallocate(kept, 1 << 20);
  EXPECT_THROW(cpu().set_limit(-1), lamina::Error);
}

TEST(CpuAllocator, AbsurdSizesRaise) {
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX / 2, size_t{1} << 62, size_t{1} << 47}) {
    try {
      cpu().allocate(bytes);
      FAIL() << bytes;
    } catch (const lamina::Error& e) {
      EXPECT_EQ(e.kind(), lamina::ErrorKind::OutOfMemory);
    }
  }
}

TEST(CpuAllocator, ThreadsFreeWhatOthersAllocate) {
  const auto before = cpu().statistics();
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<std::pair<void*, size_t>>> made(4);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&made, t] {
        for (int i = 0; i < 2000; ++i) {
          const size_t bytes = 1 + (i * 37 + t) % 1500;
          made[t].emplace_back(cpu().allocate(bytes), bytes);
          std::memset(made[t].back().first, t, bytes);
        }
      });
    for (auto& t : threads) t.join();
    threads.clear();
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&made, t] {
        for (auto& [p, bytes] : made[(t + 1) % 4]) cpu().deallocate(p, bytes);
      });
    for (auto& t : threads) t.join();
  }
  const auto after = cpu().statistics();
  EXPECT_EQ(after.allocated, before.allocated);
  EXPECT_LT(after.reserved - before.reserved, 200 << 20);
}

struct FreesAtThreadExit {
  void* block = nullptr;
  ~FreesAtThreadExit() {
    if (block) cpu().deallocate(block, 256);
  }
};

TEST(CpuAllocator, DestructorsOfThreadsMayFree) {
  const auto before = cpu().statistics().allocated;
  for (int i = 0; i < 10; ++i)
    std::thread([] {
      static thread_local FreesAtThreadExit object;
      object.block = cpu().allocate(256);
    }).join();
  EXPECT_EQ(cpu().statistics().allocated, before);
}

struct FreesAtProcessExit {
  void* small = cpu().allocate(100);
  void* large = cpu().allocate(100000);
  ~FreesAtProcessExit() {
    cpu().deallocate(small, 100);
    cpu().deallocate(large, 100000);
    cpu().deallocate(cpu().allocate(5000), 5000);
  }
} g_frees_at_process_exit;

#if !defined(__SANITIZE_THREAD__)
TEST(CpuAllocator, WorksInAForkedChild) {
  void* mine = cpu().allocate(100);
  std::vector<std::thread> others;
  std::atomic<bool> stop{false};
  for (int t = 0; t < 3; ++t)
    others.emplace_back([&stop] {
      while (!stop) {
        cpu().deallocate(cpu().allocate(5000), 5000);
        cpu().deallocate(cpu().allocate(50), 50);
      }
    });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      for (int k = 0; k < 1000; ++k) {
        void* p = cpu().allocate(1 + k * 17);
        std::memset(p, 1, 1 + k * 17);
        cpu().deallocate(p, 1 + k * 17);
      }
      cpu().deallocate(mine, 100);
      std::thread([] { cpu().deallocate(cpu().allocate(70), 70); }).join();
      _exit(cpu().statistics().allocated > (int64_t{1} << 40));
    }
    int status = -1;
    waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }
  stop = true;
  for (auto& t : others) t.join();
  cpu().deallocate(mine, 100);
}
#endif

}  // namespace
