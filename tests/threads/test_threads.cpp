// Eight threads at once over shared tensors: forward, backward, reductions in the pool. Small, so
// that it can run under ThreadSanitizer (`./run test --sanitize=thread`) as well as plainly.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "lamina/autograd/engine.h"
#include "lamina/autograd/variable.h"
#include "lamina/lamina.h"
#include "lamina/queue/parallel.h"

using namespace lamina;

namespace {

constexpr int kThreads = 8;

void on_all_threads(const std::function<void(int)>& f) {
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(f, i);
  for (std::thread& t : threads) t.join();
}

Tensor leaf(std::vector<float> v) {
  Tensor t = from_values(v, {static_cast<int64_t>(v.size())});
  autograd::set_requires_grad(t, true);
  return t;
}

float at(const Tensor& t, int64_t i) { return t.data_as<float>()[i]; }

TEST(Threads, ShareLeavesForwardAndBackward) {
  constexpr int kRounds = 50;
  const Tensor w = leaf({1, 2, 3}), b = leaf({0.5F, 0.5F, 0.5F});
  on_all_threads([&](int) {
    for (int round = 0; round < kRounds; ++round) {
      const Tensor loss = ops::sum(ops::add(ops::mul(w, w), b));
      ASSERT_FLOAT_EQ(at(loss, 0), 15.5F);
      autograd::backward({&loss, 1}, {}, false, false, {});
    }
  });
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_FLOAT_EQ(at(autograd::grad(w), i),
                    2.0F * static_cast<float>((i + 1) * kThreads * kRounds));
    EXPECT_FLOAT_EQ(at(autograd::grad(b), i), static_cast<float>(kThreads * kRounds));
  }
}

TEST(Threads, ReadAGradientThatIsReplaced) {
  const Tensor w = leaf({1, 2, 3});
  on_all_threads([&](int thread) {
    for (int round = 0; round < 200; ++round) {
      if (thread % 2) {
        const Tensor g = autograd::grad(w);
        if (g.defined()) ASSERT_EQ(g.numel(), 3);
      } else {
        // Recorded, so that every pass puts a new tensor there.
        const Tensor loss = ops::sum(ops::mul(w, w));
        autograd::backward({&loss, 1}, {}, true, true, {});
        if (round % 20 == 0) autograd::set_grad(w, {});
      }
    }
  });
  autograd::set_grad(w, {});  // its history leads back to w
}

TEST(Threads, ShareAGraph) {
  const Tensor x = leaf({1, 2, 3});
  const Tensor y = ops::mul(x, ops::mul(x, x));
  const Tensor loss = ops::sum(y);
  on_all_threads([&](int i) {
    for (int round = 0; round < 20; ++round) {
      const bool twice = (i + round) % 2 == 0;
      const std::vector<Tensor> g = autograd::grad({&loss, 1}, {&x, 1}, {}, true, twice, false);
      ASSERT_FLOAT_EQ(at(g[0], 2), 27);
      if (!twice) continue;
      const Tensor slope = ops::sum(g[0]);
      ASSERT_FLOAT_EQ(at(autograd::grad({&slope, 1}, {&x, 1}, {}, true, false, false)[0], 2), 18);
    }
  });
}

TEST(Threads, ShareThePool) {
  const int before = queue::get_num_threads();
  queue::set_num_threads(4);
  const Tensor a = ops::ones({300000});
  std::atomic<int> wrong{0};
  on_all_threads([&](int) {
    for (int round = 0; round < 5; ++round) {
      const Tensor s = ops::sum(ops::add(a, a));
      if (at(s, 0) != 600000) ++wrong;
    }
  });
  queue::set_num_threads(before);
  EXPECT_EQ(wrong, 0);
}

TEST(Threads, PassTensorsAround) {
  // Made on one thread, the last reference dropped on another.
  std::vector<Tensor> made(kThreads * 64);
  on_all_threads([&](int i) {
    for (int k = 0; k < 64; ++k) made[static_cast<size_t>(i * 64 + k)] = ops::full({4}, double(i));
  });
  on_all_threads([&](int i) {
    const int from = (i + 1) % kThreads;
    for (int k = 0; k < 64; ++k) {
      Tensor t = std::move(made[static_cast<size_t>(from * 64 + k)]);
      ASSERT_EQ(at(ops::view(t, {2, 2}), 3), static_cast<float>(from));
    }
  });
}

TEST(Threads, FirstCallsOfAnOperator) {
  // Its table fills while others read it.
  const Tensor a = ops::ones({3});
  on_all_threads([&](int) {
    ASSERT_FLOAT_EQ(at(ops::expm1(ops::log1p(a)), 0), 1);
    ASSERT_FLOAT_EQ(at(ops::sum(ops::softmax(a, 0, std::nullopt)), 0), 1);
  });
}

TEST(Sanitizer, ReportsAPlantedRace) {
  // `./run test --sanitize=thread --planted-fault` has to end here.
  const bool planted = std::getenv("LAMINA_PLANTED_FAULT") != nullptr;
  int64_t plain = 0;
  std::atomic<int64_t> counted{0};
  on_all_threads([&](int) {
    for (int k = 0; k < 1000; ++k) {
      if (planted) ++plain;
      ++counted;
    }
  });
  EXPECT_EQ(counted, kThreads * 1000);
}

}  // namespace
