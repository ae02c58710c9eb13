// Programs of the tile machine against plain loops: layouts, element types, registers, levels,
// threads.
#include <gtest/gtest.h>

#include <algorithm>

#include "lamina/core/error.h"
#include "lamina/queue/parallel.h"
#include "tests/cpp/tile_testing.h"

namespace lamina::tile {
namespace {

using testing::Array;
using testing::at_every_level;
using testing::run_op;

TEST(Tile, EveryOperationHasItsLoops) {
  at_every_level([] {
    for (int i = 0; i < kNumOps; ++i) {
      const Op op = static_cast<Op>(i);
      Op found;
      ASSERT_TRUE(op_from_name(op_info(op).name, found));
      EXPECT_EQ(found, op);
      for (ScalarType t : kAllScalarTypes) {
        if (compute_type(t) != t) {
          EXPECT_EQ(direct_loop(op, t), nullptr);
          continue;
        }
        EXPECT_EQ(direct_loop(op, t) != nullptr, op_supports(op, t))
            << op_info(op).name << ' ' << name(t);
      }
    }
  });
}

TEST(Tile, AnyLayoutAndAnyElementTypes) {
  at_every_level([] {
    std::mt19937 g(7);
    const std::vector<std::vector<int64_t>> shapes = {
        {},        {1},       {5},         {3000}, {40, 50},     {33, 1, 7},           {2, 3, 65},
        {1100, 3}, {3, 1100}, {64, 64, 2}, {0, 4}, {9, 8, 7, 6}, {2, 2, 2, 2, 2, 2, 2}};
    const ScalarType types[] = {ScalarType::Float32, ScalarType::Float64, ScalarType::BFloat16,
                                ScalarType::Float16, ScalarType::Int32,   ScalarType::UInt8,
                                ScalarType::Int64,   ScalarType::Bool,    ScalarType::Float8E5M2};
    for (const auto& shape : shapes)
      for (int round = 0; round < 12; ++round) {
        const auto make = [&](ScalarType t, bool may_broadcast) {
          std::vector<int> order(shape.size());
          std::iota(order.begin(), order.end(), 0);
          std::shuffle(order.begin(), order.end(), g);
          std::vector<bool> broadcast(shape.size(), false);
          if (may_broadcast)
            for (size_t d = 0; d < shape.size(); ++d) broadcast[d] = g() % 4 == 0;
          Array a(t, shape, order, 1 + g() % 2, g() % 3 == 0, broadcast);
          a.randomize(g());
          return a;
        };
        Array a = make(types[g() % std::size(types)], true);
        Array b = make(types[g() % std::size(types)], true);
        Array out = make(round % 2 ? ScalarType::Float32 : ScalarType::BFloat16, false);
        run_op(Op::sub, ScalarType::Float32, out, {&a, &b});
        for (int64_t i = 0; i < out.numel(); ++i) {
          const float expected =
              static_cast<float>(a.get(i).to_double()) - static_cast<float>(b.get(i).to_double());
          Array one(out.dtype, {});
          one.set(0, Scalar(expected));
          ASSERT_EQ(out.get(i).to_double(), one.get(0).to_double())
              << i << " of " << str(std::span<const int64_t>(shape)) << ' ' << name(a.dtype) << ' '
              << name(b.dtype);
        }
      }
  });
}

TEST(Tile, CopyConvertsBetweenAllTypes) {
  at_every_level([] {
    for (ScalarType from : kAllScalarTypes)
      for (ScalarType to : kAllScalarTypes) {
        Array in(from, {37, 45}, {1, 0});
        in.randomize(3);
        Array out(to, {37, 45});
        copy(out.operand(), in.operand(), 2, out.sizes.data());
        for (int64_t i = 0; i < out.numel(); i += 7) {
          Array expected(to, {});
          visit(from, [&]<class S>(TypeTag<S>) {
            S s;
            std::memcpy(&s, in.at(i), sizeof s);
            visit(to, [&]<class D>(TypeTag<D>) {
              const D d =
                  is_small_float_type<D> ? convert_to<D>(convert_to<float>(s)) : convert_to<D>(s);
              std::memcpy(expected.at(0), &d, sizeof d);
            });
          });
          ASSERT_EQ(std::memcmp(out.at(i), expected.at(0), item_size(to)), 0)
              << name(from) << " to " << name(to);
        }
      }
  });
}

TEST(Tile, FloatToIntegerIsTheSameInLoopsAndAlone) {
  at_every_level([] {
    const double values[] = {0.5,  -1.5,   300,  -300,  1e5, 3e9,      -3e9,     1e10,
                             1e19, 1.9e19, 1e20, -1e19, NAN, INFINITY, -INFINITY};
    for (ScalarType from : {ScalarType::Float32, ScalarType::Float64})
      for (ScalarType to : kAllScalarTypes) {
        if (!is_integral(to)) continue;
        Array in(from, {150});
        for (int64_t i = 0; i < 150; ++i) in.set(i, Scalar(values[i % 15]));
        Array out(to, {150});
        copy(out.operand(), in.operand(), 1, out.sizes.data());
        for (int64_t i = 0; i < 150; ++i) {
          Array alone(to, {});
          convert(alone.at(0), to, in.at(i), from, 1);
          ASSERT_EQ(out.get(i).to_int(), alone.get(0).to_int())
              << name(to) << ' ' << values[i % 15];
        }
      }
  });
}

// m = b1 * m + (1 - b1) * g;  p = p - lr * m, in place, the second reading what the first wrote.
TEST(Tile, ProgramsOfManyInstructionsInPlace) {
  static constexpr Instr code[] = {{Op::sub, 5, 4, 3},
                                   {Op::mul, 5, 5, 1},
                                   {Op::madd, 5, 5, 3, 2},
                                   {Op::mul, 6, 5, 4},
                                   {Op::sub, 6, 0, 6}};
  static constexpr RegClass classes[7] = {};
  static constexpr uint8_t outputs[] = {5, 6};
  static constexpr Scalar constants[] = {Scalar(1.0)};
  static constexpr Program program{.code = code,
                                   .classes = classes,
                                   .outputs = outputs,
                                   .constants = constants,
                                   .num_instr = 5,
                                   .num_inputs = 3,
                                   .num_scalars = 1,
                                   .num_constants = 1,
                                   .num_outputs = 2,
                                   .num_registers = 7};
  at_every_level([] {
    for (ScalarType t : {ScalarType::Float32, ScalarType::BFloat16}) {
      Array p(t, {70, 50}), g(t, {70, 50}, {1, 0}), m(t, {70, 50});
      p.randomize(1);
      g.randomize(2);
      m.randomize(3);
      Array p0 = p, m0 = m;
      const Operand outs[] = {m.operand(), p.operand()};
      const Operand ins[] = {p.operand(), g.operand(), m.operand()};
      const Scalar scalars[] = {Scalar(0.9)};
      run({.program = &program,
           .compute = ScalarType::Float32,
           .ndim = 2,
           .sizes = p.sizes.data(),
           .outs = outs,
           .ins = ins,
           .scalars = scalars});
      for (int64_t i = 0; i < p.numel(); ++i) {
        const float b1 = 0.9f;
        const float grad = static_cast<float>(g.get(i).to_double());
        const float mi = (1.0f - b1) * grad + b1 * static_cast<float>(m0.get(i).to_double());
        const float pi = static_cast<float>(p0.get(i).to_double()) - mi * 1.0f;
        ASSERT_EQ(m.get(i).to_double(),
                  t == ScalarType::Float32 ? mi : static_cast<float>(BFloat16(mi)));
        ASSERT_EQ(p.get(i).to_double(),
                  t == ScalarType::Float32 ? pi : static_cast<float>(BFloat16(pi)));
      }
    }
  });
}

// out0 = a + b written over a, out1 = a * b: the product must still see the old a.
TEST(Tile, AnOutputOverAnInputThatIsReadLater) {
  static constexpr Instr code[] = {{Op::add, 2, 0, 1}, {Op::mul, 3, 0, 1}};
  static constexpr RegClass classes[4] = {};
  static constexpr uint8_t outputs[] = {2, 3};
  static constexpr Program program{.code = code,
                                   .classes = classes,
                                   .outputs = outputs,
                                   .num_instr = 2,
                                   .num_inputs = 2,
                                   .num_outputs = 2,
                                   .num_registers = 4};
  Array a(ScalarType::Float32, {5000}), b(ScalarType::Float32, {5000}),
      c(ScalarType::Float32, {5000});
  a.randomize(1);
  b.randomize(2);
  Array a0 = a;
  const Operand outs[] = {a.operand(), c.operand()};
  const Operand ins[] = {a.operand(), b.operand()};
  run({.program = &program,
       .compute = ScalarType::Float32,
       .ndim = 1,
       .sizes = a.sizes.data(),
       .outs = outs,
       .ins = ins});
  for (int64_t i = 0; i < 5000; ++i) {
    const float x = static_cast<float>(a0.get(i).to_double()),
                y = static_cast<float>(b.get(i).to_double());
    ASSERT_EQ(a.get(i).to_double(), x + y);
    ASSERT_EQ(c.get(i).to_double(), x * y);
  }
}

TEST(Tile, RegisterClassesOfComplexAndBool) {
  at_every_level([] {
    Array z(ScalarType::Complex64, {30, 40}, {1, 0}), w(ScalarType::Complex64, {30, 40}),
        size(ScalarType::Float32, {30, 40});
    z.randomize(1);
    w.randomize(2);
    run_op(Op::abs, ScalarType::Complex64, size, {&z});
    Array equal(ScalarType::Bool, {30, 40});
    run_op(Op::eq, ScalarType::Complex64, equal, {&z, &z});
    Array mask(ScalarType::Bool, {30, 40}), chosen(ScalarType::Complex64, {30, 40});
    mask.randomize(5);
    run_op(Op::where, ScalarType::Complex64, chosen, {&mask, &z, &w});
    for (int64_t i = 0; i < z.numel(); ++i) {
      const auto v = z.get(i).to_complex();
      ASSERT_FLOAT_EQ(size.get(i).to_double(), std::abs(v));
      ASSERT_TRUE(equal.get(i).to_bool());
      ASSERT_EQ(chosen.get(i).to_complex(), mask.get(i).to_bool() ? v : w.get(i).to_complex());
    }
  });
}

template <class T>
T apply(Op op, T a, T b) {
  T out{};
  direct_loop(op, scalar_type_of<T>)(&out, &a, &b, nullptr, 1);
  return out;
}

TEST(Tile, IntegersWrapAndDivideAsDefined) {
  at_every_level([] {
    EXPECT_EQ(apply<int32_t>(Op::add, INT32_MAX, 1), INT32_MIN);
    EXPECT_EQ(apply<int32_t>(Op::mul, INT32_MIN, -1), INT32_MIN);
    EXPECT_EQ(apply<uint16_t>(Op::mul, 65535, 65535), 1);
    EXPECT_EQ(apply<int64_t>(Op::div_floor, INT64_MIN, -1), INT64_MIN);
    EXPECT_EQ(apply<int64_t>(Op::remainder, INT64_MIN, -1), 0);
    EXPECT_EQ(apply<int32_t>(Op::div_floor, -7, 2), -4);
    EXPECT_EQ(apply<int32_t>(Op::div_trunc, -7, 2), -3);
    EXPECT_EQ(apply<int32_t>(Op::remainder, -7, 2), 1);
    EXPECT_EQ(apply<int32_t>(Op::remainder, 7, -2), -1);
    EXPECT_EQ(apply<int32_t>(Op::fmod, -7, 2), -1);
    EXPECT_EQ(apply<int8_t>(Op::pow, 2, 7), -128);
    EXPECT_EQ(apply<int64_t>(Op::pow, -1, -3), -1);
    EXPECT_EQ(apply<int64_t>(Op::pow, 3, -1), 0);
    EXPECT_EQ(apply<int32_t>(Op::shl, 1, 32), 0);
    EXPECT_EQ(apply<int32_t>(Op::shl, 1, -1), 0);
    EXPECT_EQ(apply<int32_t>(Op::shr, -8, 40), -1);
    EXPECT_EQ(apply<uint8_t>(Op::shr, 200, 8), 0);
    EXPECT_EQ(apply<int32_t>(Op::gcd, INT32_MIN, 6), 2);
    EXPECT_EQ(apply<int32_t>(Op::lcm, -4, 6), 12);
    EXPECT_EQ(apply<uint8_t>(Op::sub, 1, 2), 255);
    for (Op op : {Op::div_floor, Op::div_trunc, Op::remainder, Op::fmod}) {
      try {
        apply<int32_t>(op, 1, 0);
        FAIL() << op_info(op).name;
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::Runtime);
        EXPECT_STREQ(e.what(), "ZeroDivisionError");
      }
    }
    Array a(ScalarType::Int64, {200000}), b(ScalarType::Int64, {200000});
    EXPECT_THROW(run_op(Op::div_floor, ScalarType::Int64, a, {&a, &b}), Error);
  });
}

TEST(Tile, FloatsFollowIeeeAndPython) {
  at_every_level([] {
    EXPECT_EQ(apply(Op::div_floor, 1.0f, 0.1f), 9.0f);
    EXPECT_EQ(apply(Op::div_floor, -5.0, INFINITY * 1.0), -1.0);
    EXPECT_EQ(apply(Op::div_floor, 5.0, 0.0), INFINITY);
    EXPECT_EQ(apply(Op::remainder, -5.0, 3.0), 1.0);
    EXPECT_EQ(apply(Op::fmod, -5.0, 3.0), -2.0);
    EXPECT_TRUE(std::isnan(apply(Op::maximum, NAN, 1.0f)));
    EXPECT_TRUE(std::isnan(apply(Op::minimum, 1.0f, NAN)));
    EXPECT_EQ(apply(Op::fmax, NAN, 1.0f), 1.0f);
    EXPECT_EQ(apply(Op::fmin, 1.0f, NAN), 1.0f);
    EXPECT_EQ(apply(Op::mul_zero, 0.0f, NAN), 0.0f);
    EXPECT_EQ(apply(Op::xlogy, 0.0, 0.0), 0.0);
    EXPECT_TRUE(std::isnan(apply(Op::xlogy, 0.0, double(NAN))));
    EXPECT_EQ(apply(Op::logaddexp, INFINITY * 1.0, INFINITY * 1.0), INFINITY);
    EXPECT_EQ(apply(Op::logaddexp, -INFINITY * 1.0, -INFINITY * 1.0), -INFINITY);
    const float x[] = {NAN, 1.0f}, lo[] = {0.0f, NAN}, hi[] = {2.0f, 2.0f};
    float out[2];
    direct_loop(Op::clamp, ScalarType::Float32)(out, x, lo, hi, 2);
    EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
    const float half[] = {0.5f, 1.5f, -0.5f, 2.5f};
    float rounded[4];
    direct_loop(Op::round, ScalarType::Float32)(rounded, half, nullptr, nullptr, 4);
    EXPECT_EQ(rounded[0], 0.0f);
    EXPECT_EQ(rounded[1], 2.0f);
    EXPECT_TRUE(std::signbit(rounded[2]));
    EXPECT_EQ(rounded[3], 2.0f);
  });
}

TEST(Tile, ComplexDivisionAndMagnitudeStayInRange) {
  using C = std::complex<float>;
  at_every_level([] {
    EXPECT_EQ(apply(Op::div, C(0, 0), C(1e-36f, 0)), C(0, 0));
    EXPECT_NEAR(std::abs(apply(Op::div, C(-8e-24f, -6e-24f), C(1e-23f, 0)) - C(-0.8f, -0.6f)), 0,
                1e-5);
    const C big(0, -1e20f);
    float size = 0;
    direct_loop(Op::abs, ScalarType::Complex64)(&size, &big, nullptr, nullptr, 1);
    EXPECT_FLOAT_EQ(size, 1e20f);
    const C root = apply(Op::sqrt, big, C());
    EXPECT_FLOAT_EQ(root.real(), 7071067811.9f);
    EXPECT_FLOAT_EQ(root.imag(), -7071067811.9f);
  });
}

TEST(Tile, SingleElementSides) {
  std::vector<float> a(2500), out(2500);
  std::iota(a.begin(), a.end(), 1.0f);
  const float two = 2;
  direct_with_single(Op::sub, ScalarType::Float32, 2, out.data(), a.data(), &two, 2500);
  EXPECT_EQ(out[2499], 2498.0f);
  direct_with_single(Op::sub, ScalarType::Float32, 1, out.data(), &two, a.data(), 2500);
  EXPECT_EQ(out[2499], -2498.0f);
  Array filled(ScalarType::Int16, {20, 30}, {1, 0});
  fill(filled.operand(), 2, filled.sizes.data(), Scalar(-7));
  for (int64_t i = 0; i < 600; ++i) ASSERT_EQ(filled.get(i).to_int(), -7);
}

TEST(Tile, SameBitsForAnyNumberOfThreads) {
  const int before = queue::get_num_threads();
  for (Op op : {Op::exp, Op::gelu, Op::div, Op::pow}) {
    std::vector<unsigned char> first;
    for (int threads : {1, 2, 7}) {
      queue::set_num_threads(threads);
      Array a(ScalarType::Float32, {300, 401}, {1, 0}), b(ScalarType::BFloat16, {300, 401}),
          out(ScalarType::Float32, {300, 401});
      a.randomize(1);
      b.randomize(2);
      if (op_info(op).arity == 2)
        run_op(op, ScalarType::Float32, out, {&a, &b});
      else
        run_op(op, ScalarType::Float32, out, {&a});
      if (first.empty()) first = out.memory;
      ASSERT_EQ(out.memory, first) << op_info(op).name << ' ' << threads;
    }
  }
  queue::set_num_threads(before);
}

}  // namespace
// The build must carry every level that this machine can run.
TEST(Isa, OffersWhatTheMachineHas) {
  EXPECT_TRUE(isa_available(Isa::Baseline));
#if defined(__x86_64__)
  EXPECT_EQ(isa_available(Isa::Avx2),
            __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));
#endif
}

}  // namespace lamina::tile
