#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "lamina/kernels/result.h"
#include "lamina/lamina.h"

using namespace lamina;

namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

Tensor ramp(int64_t n) {
  std::vector<float> v(n);
  for (int64_t i = 0; i < n; ++i) v[i] = static_cast<float>(i);
  return from_values(v, {n});
}
std::vector<float> values(const Tensor& t) {
  const Tensor c = ops::contiguous(t);
  return {c.data_as<float>(), c.data_as<float>() + c.numel()};
}
template <class F>
ErrorKind kind_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::Internal;
}

TEST(Dim, ArithmeticRaisesInsteadOfWrapping) {
  EXPECT_EQ((Dim(3) * Dim(4) + Dim(2) - Dim(1)).value(), 13);
  EXPECT_EQ((Dim(-7) / Dim(2)).value(), -3);
  EXPECT_EQ(kind_of([] { return Dim(kMax) + Dim(1); }), ErrorKind::Runtime);
  EXPECT_EQ(kind_of([] { return Dim(-kMax) - Dim(2); }), ErrorKind::Runtime);
  EXPECT_EQ(kind_of([] { return Dim(kMax) * Dim(2); }), ErrorKind::Runtime);
}

TEST(Dim, NumberOfElements) {
  EXPECT_EQ(numel_of({}).value(), 1);
  EXPECT_EQ(numel_of({2, 3, 4}).value(), 24);
  EXPECT_EQ(numel_of({kMax, 0, kMax}).value(), 0);  // empty, whatever the others are
  EXPECT_EQ(kind_of([] { return numel_of({int64_t{1} << 32, int64_t{1} << 31}); }),
            ErrorKind::Runtime);
}

TEST(Dim, WrapsFromTheEnd) {
  EXPECT_EQ(wrap_dim(-1, 3, "test"), 2);
  EXPECT_EQ(wrap_dim(0, 0, "test"), 0);
  EXPECT_EQ(wrap_dim(-1, 0, "test"), 0);
  for (const int64_t d : {int64_t{3}, int64_t{-4}, kMax, -kMax - 1})
    EXPECT_EQ(kind_of([&] { wrap_dim(d, 3, "test"); }), ErrorKind::Index);
}

TEST(SmallVector, GrowsCopiesAndMoves) {
  SmallVector<int64_t, 3> v{1, 2};
  v.push_back(3);
  const int64_t* inside = v.data();
  EXPECT_TRUE(reinterpret_cast<const char*>(inside) >= reinterpret_cast<const char*>(&v) &&
              reinterpret_cast<const char*>(inside) < reinterpret_cast<const char*>(&v + 1));
  for (int64_t i = 4; i <= 100; ++i) v.push_back(i);
  EXPECT_EQ(v.size(), 100u);
  SmallVector<int64_t, 3> copy = v;
  copy[0] = -1;
  EXPECT_EQ(v[0], 1);
  SmallVector<int64_t, 3> moved = std::move(v);
  EXPECT_EQ(moved.size(), 100u);
  EXPECT_TRUE(v.empty());
  v.push_back(7);  // a vector that was moved from can be used again
  EXPECT_EQ(v.back(), 7);
  moved = v;
  EXPECT_EQ(moved.size(), 1u);
  copy = std::move(v);
  EXPECT_EQ(copy.size(), 1u);
  EXPECT_EQ(copy[0], 7);
}

TEST(SmallVector, InsertsErasesAndResizes) {
  SmallVector<int, 2> v{1, 3};
  v.insert(1, 2);
  v.insert(0, 0);
  v.insert(4, 4);
  EXPECT_EQ(std::vector<int>(v.begin(), v.end()), (std::vector<int>{0, 1, 2, 3, 4}));
  v.erase(0);
  v.erase(3);
  v.resize(5, 9);
  EXPECT_EQ(std::vector<int>(v.begin(), v.end()), (std::vector<int>{1, 2, 3, 9, 9}));
  v.resize(1);
  v.pop_back();
  EXPECT_TRUE(v.empty());
  EXPECT_TRUE((IntList{1, 2} == IntList{1, 2}));
  EXPECT_FALSE((IntList{1, 2} == IntList{1, 3}));
  EXPECT_FALSE((IntList{1, 2} == IntList{1}));
}

TEST(Device, TextBothWays) {
  for (const char* text : {"cpu", "cpu:0", "cuda", "cuda:1", "cuda:127", "meta"})
    EXPECT_EQ(to_string(parse_device(text)), text);
  EXPECT_TRUE(parse_device("cpu") == kCpu);
  EXPECT_FALSE(parse_device("cuda:0") == parse_device("cuda:1"));
  for (const char* text : {"", "gpu", "cuda:", "cuda:-1", "cuda:01", "cuda:128", "cuda:1x",
                           "cuda: 1", ":0", "CPU", "cuda:99999999999999999999"})
    EXPECT_EQ(kind_of([&] { parse_device(text); }), ErrorKind::Runtime) << text;
}

TEST(Tensor, SmallOnesLiveInOneBlockAndOutliveTheirBase) {
  Tensor view;
  {
    const Tensor base = ramp(16);  // 64 bytes: header, storage and bytes in one allocation
    view = ops::detach(ops::narrow(base, 0, 4, 4));  // a differentiable view would keep its base
    EXPECT_EQ(view.storage(), base.storage());
  }
  // The base is gone; new tensors take whatever memory is free.
  std::vector<Tensor> others;
  for (int i = 0; i < 100; ++i) others.push_back(ops::full({16}, -1.0));
  EXPECT_EQ(values(view), (std::vector<float>{4, 5, 6, 7}));
  EXPECT_EQ(view.storage()->use_count(), 1u);
}

TEST(Tensor, OutlivesItsStorageTheOtherWayRound) {
  Tensor t = ramp(4);
  {
    const Tensor other = ramp(1000);
    t.impl()->set_storage(IntrusivePtr<Storage>::share(other.storage()));
    t.impl()->set_contiguous_window({1000});
  }
  EXPECT_EQ(t.data_as<float>()[999], 999.0f);
}

TEST(Tensor, ViewsOfViewsKeepTheStorage) {
  Tensor t = ops::reshape(ramp(600), {20, 30});
  for (int i = 0; i < 50; ++i) t = ops::transpose(t, 0, 1);
  t = ops::select(ops::slice(t, 0, 1, 20, 2), 1, 3);
  EXPECT_EQ(t.sizes(), (IntList{10}));
  EXPECT_EQ(t.strides(), (IntList{60}));
  EXPECT_EQ(t.storage_offset(), 33);
  EXPECT_EQ(values(t).front(), 33.0f);
}

TEST(Tensor, CountsReferencesAcrossThreads) {
  const Tensor t = ramp(8);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 10000; ++j) {
        const Tensor a = t;
        const Tensor b = ops::narrow(a, 0, 1, 2);
      }
    });
  for (std::thread& th : threads) th.join();
  EXPECT_EQ(t.impl()->use_count(), 1u);
  EXPECT_EQ(t.storage()->use_count(), 1u);
}

TEST(Storage, GivesBackForeignMemoryOnce) {
  static int given_back = 0;
  static float bytes[4] = {1, 2, 3, 4};
  given_back = 0;
  {
    const auto storage = Storage::make(bytes, sizeof bytes, kCpu,
                                       [](void*, size_t, void*) noexcept { ++given_back; });
    const Tensor t = Tensor::adopt(
        TensorImpl::make(ScalarType::Float32, kCpu, strided_keys(DeviceType::CPU), storage));
    t.impl()->set_contiguous_window({4});
    const Tensor view = ops::slice(t, 0, 2);
    EXPECT_EQ(values(view), (std::vector<float>{3, 4}));
    EXPECT_EQ(given_back, 0);
  }
  EXPECT_EQ(given_back, 1);
}

TEST(Strides, RowMajorAndMemoryFormats) {
  EXPECT_TRUE(IntList(contiguous_strides({2, 3, 4})) == (IntList{12, 4, 1}));
  EXPECT_TRUE(IntList(contiguous_strides({2, 0, 4})) == (IntList{4, 4, 1}));
  EXPECT_TRUE(IntList(strides_for({2, 3, 4, 5}, MemoryFormat::ChannelsLast)) ==
              (IntList{60, 1, 15, 3}));
  EXPECT_TRUE(IntList(strides_for({2, 3, 4, 5, 6}, MemoryFormat::ChannelsLast3d)) ==
              (IntList{360, 1, 90, 18, 3}));
  EXPECT_EQ(kind_of([] { strides_for({2, 3}, MemoryFormat::ChannelsLast); }), ErrorKind::Runtime);
}

TEST(Strides, FormatsSurviveElementwiseWork) {
  const Tensor t = ops::contiguous(ops::rand({2, 3, 4, 5}), MemoryFormat::ChannelsLast);
  EXPECT_TRUE(t.is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_FALSE(t.is_contiguous());
  EXPECT_TRUE(t.is_non_overlapping_and_dense());
  EXPECT_TRUE(ops::neg(t).is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_TRUE(ops::clone(t).is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_TRUE(ops::contiguous(t).is_contiguous());
  const Tensor p = ops::permute(ops::rand({2, 3, 4}), {2, 0, 1});
  EXPECT_EQ(ops::abs(p).strides(), p.strides());
}

TEST(Strides, OneElementAndEmptyAreContiguous) {
  const Tensor t = ramp(12);
  EXPECT_TRUE(ops::as_strided(t, {1, 1}, {7, 5}).is_contiguous());
  EXPECT_TRUE(ops::as_strided(t, {0, 3}, {7, 5}).is_contiguous());
  EXPECT_FALSE(ops::as_strided(t, {2, 2}, {1, 2}).is_contiguous());
  EXPECT_TRUE(ops::as_strided(t, {2, 2}, {1, 2}).is_non_overlapping_and_dense());
  EXPECT_FALSE(ops::as_strided(t, {2, 2}, {4, 1}).is_non_overlapping_and_dense());
}

TEST(Overlap, WithinOneTensor) {
  const Tensor t = ramp(64);
  EXPECT_EQ(internal_overlap(t), Overlap::No);
  EXPECT_EQ(internal_overlap(ops::as_strided(t, {4, 4}, {1, 4})), Overlap::No);
  EXPECT_EQ(internal_overlap(ops::expand(ops::narrow(t, 0, 0, 1), {8})), Overlap::Yes);
  EXPECT_NE(internal_overlap(ops::as_strided(t, {4, 4}, {1, 1})), Overlap::No);
  EXPECT_NE(internal_overlap(ops::as_strided(t, {4, 4}, {2, 3})), Overlap::No);
  EXPECT_EQ(internal_overlap(ops::as_strided(t, {1, 4}, {0, 1})), Overlap::No);
  EXPECT_EQ(internal_overlap(ops::as_strided(t, {0, 4}, {0, 0})), Overlap::No);
}

TEST(Overlap, BetweenTensors) {
  const Tensor t = ramp(64);
  const auto part = [&](int64_t start, int64_t n) { return ops::narrow(t, 0, start, n); };
  EXPECT_TRUE(may_share_bytes(part(0, 32), part(31, 2)));
  EXPECT_FALSE(may_share_bytes(part(0, 32), part(32, 32)));
  EXPECT_FALSE(may_share_bytes(t, ramp(64)));
  EXPECT_FALSE(
      may_share_bytes(ops::slice(t, 0, 0, std::nullopt, 2), ops::slice(t, 0, 1, std::nullopt, 2)));
  EXPECT_TRUE(
      may_share_bytes(ops::slice(t, 0, 0, std::nullopt, 2), ops::slice(t, 0, 1, std::nullopt, 3)));
  EXPECT_TRUE(same_window(t, ops::narrow(t, 0, 0, 64)));
  EXPECT_FALSE(same_window(t, part(0, 63)));
}

TEST(Overlap, WritesToOverlappingTargetsAreRefused) {
  const Tensor t = ramp(64);
  EXPECT_EQ(kind_of([&] { ops::neg_(ops::expand(ops::narrow(t, 0, 0, 1), {8})); }),
            ErrorKind::Runtime);
  EXPECT_EQ(kind_of([&] { ops::neg_out(ops::narrow(t, 0, 1, 8), ops::narrow(t, 0, 0, 8)); }),
            ErrorKind::Runtime);
  ops::neg_out(ops::narrow(t, 0, 0, 8), ops::narrow(t, 0, 0, 8));  // the same window is fine
  EXPECT_EQ(t.data_as<float>()[7], -7.0f);
}

TEST(Windows, MustLieInTheStorage) {
  const Tensor t = ramp(10);
  EXPECT_EQ(kind_of([&] { ops::as_strided(t, {11}, {1}); }), ErrorKind::Runtime);
  EXPECT_EQ(kind_of([&] { ops::as_strided(t, {2}, {10}); }), ErrorKind::Runtime);
  EXPECT_EQ(kind_of([&] { ops::as_strided(t, {2}, {kMax}); }), ErrorKind::Runtime);
  EXPECT_EQ(kind_of([&] { ops::as_strided(t, {kMax, kMax}, {1, 1}); }), ErrorKind::Runtime);
  EXPECT_EQ(kind_of([&] { ops::as_strided(t, {1}, {1}, kMax); }), ErrorKind::Runtime);
  EXPECT_EQ(kind_of([&] { ops::as_strided(t, {1}, {1}, -1); }), ErrorKind::Runtime);
  EXPECT_EQ(ops::as_strided(t, {2, 5}, {5, 1}).numel(), 10);
}

TEST(Sizes, NegativeHugeAndManyAreRefused) {
  EXPECT_EQ(kind_of([] { ops::empty({-1}); }), ErrorKind::Runtime);
  EXPECT_EQ(kind_of([] { ops::empty({kMax, kMax}); }), ErrorKind::Runtime);
  EXPECT_EQ(kind_of([] { ops::empty({kMax / 2}, ScalarType::Float64); }), ErrorKind::Runtime);
  EXPECT_EQ(kind_of([] { ops::zeros(std::vector<int64_t>(65, 1)); }), ErrorKind::Runtime);
  EXPECT_EQ(ops::zeros(std::vector<int64_t>(64, 1)).dim(), 64);
  EXPECT_EQ(ops::empty({kMax, 0}).numel(), 0);
}

TEST(Versions, AreSharedByViewsAndNotByData) {
  const Tensor t = ramp(4);
  const Tensor view = ops::narrow(t, 0, 0, 2);
  const Tensor data = autograd::data_of(t);
  const uint32_t before = t.impl()->version();
  ops::add_(view, 1);
  EXPECT_EQ(t.impl()->version(), before + 1);
  EXPECT_EQ(data.impl()->version(), 0u);
  ops::add_(data, 1);
  EXPECT_EQ(t.impl()->version(), before + 1);
  EXPECT_EQ(values(t), (std::vector<float>{2, 3, 3, 4}));
}

TEST(Scalar, ConvertsWithinRange) {
  EXPECT_EQ(Scalar(3).to_double(), 3.0);
  EXPECT_TRUE(Scalar(true).equals(1));
  EXPECT_EQ(Scalar(2.0).to_int(), 2);
  EXPECT_EQ(Scalar(std::complex<double>(1, 2)).to_complex().imag(), 2.0);
}

}  // namespace
