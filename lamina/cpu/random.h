// Random numbers on the CPU: the peer's generator (mt19937) and its ways from bits to values, so
// that the same seed gives the same integers and uniforms bit for bit and the same normals within 2
// ulp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>

#include "lamina/core/generator.h"
#include "lamina/core/scalar_type.h"

namespace lamina::cpu {

class Mt19937Generator final : public GeneratorImpl {
 public:
  static constexpr uint64_t kDefaultSeed = 67280421310721ull;
  static constexpr size_t kStateBytes = 5056;

  explicit Mt19937Generator(uint64_t seed = kDefaultSeed) : GeneratorImpl(kCpu) { set_seed(seed); }

  // Calls below need the mutex to be held if other threads use the generator; the fills take it
  // themselves.
  void set_seed(uint64_t seed);
  uint64_t seed() const { return seed_; }
  uint64_t reseed();  // from the system's entropy; returns the new seed

  uint32_t random() {
    if (--left_ == 0) refill();
    uint32_t y = state_[next_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }
  uint64_t random64() {
    const uint64_t high = random();
    return high << 32 | random();
  }

  // The byte layout of torch.get_rng_state().
  void get_state(std::span<uint8_t, kStateBytes> out) const;
  void set_state(
      std::span<const uint8_t> bytes);  // raises Runtime for a wrong size or an impossible state

  std::mutex& mutex() { return mutex_; }

  // The second value of the last scalar Box-Muller pair.
  std::optional<double> next_normal;
  std::optional<float> next_float_normal;

 private:
  void refill();

  uint64_t seed_ = kDefaultSeed;
  uint32_t left_ = 1;  // numbers until the next refill, plus one
  uint32_t next_ = 0;
  std::array<uint32_t, 624> state_{};
  std::mutex mutex_;
};

// Of the process; made at first use and never destroyed.
Mt19937Generator& default_generator();
// The generator behind a handle, or the default one for a null handle; raises Runtime for another
// device's.
Mt19937Generator& generator_of(const Generator& handle);

// What a fill writes: up to 64 dimensions, strides in elements. Values go out in order of memory
// (dimensions sorted by stride), as the peer does; a 1-d contiguous output is {data, dtype, {n},
// {1}}.
struct RandomOutput {
  void* data;
  ScalarType dtype;
  std::span<const int64_t> sizes;
  std::span<const int64_t> strides;
};

// Floating dtypes (complex: each part).
void uniform(const RandomOutput& out, double from, double to, Mt19937Generator& g);
// Complex: each part has variance std^2 / 2.
void normal(const RandomOutput& out, double mean, double std, Mt19937Generator& g);
// float64 alone: Cauchy of median a and scale b, numbers of trials of probability a, exponentials
// of normals of mean a and deviation b.
enum class Distribution : uint8_t { Cauchy, Geometric, LogNormal };
void distribute(const RandomOutput& out, Distribution kind, double a, double b,
                Mt19937Generator& g);
void exponential(const RandomOutput& out, double lambda, Mt19937Generator& g);
// Integers in [from, to), any dtype that is not complex; the caller has checked that dtype holds
// them.
void random_from_to(const RandomOutput& out, int64_t from, int64_t to, Mt19937Generator& g);
// Integers in [from, 2^63 - 1] or, with from == INT64_MIN, all of int64.
void random_from(const RandomOutput& out, int64_t from, Mt19937Generator& g);
// random_(): the whole range of an integer dtype from 0; [0, 2^mantissa] for floating ones.
void random_full(const RandomOutput& out, Mt19937Generator& g);
// 0 or 1 in any dtype.
void bernoulli(const RandomOutput& out, double p, Mt19937Generator& g);
// p: float32 or float64 probabilities with the output's sizes; raises Runtime outside [0, 1].
void bernoulli(const RandomOutput& out, const void* p, ScalarType p_dtype,
               std::span<const int64_t> p_strides, Mt19937Generator& g);
// A permutation of 0 .. n-1 into a contiguous integer or floating output.
void randperm(void* out, ScalarType dtype, int64_t n, Mt19937Generator& g);
// `samples` indices per row of `weights` (rows, n), float32 or float64, drawn with probability
// proportional to the weights into a contiguous int64 output (rows, samples). Raises Runtime for
// negative, infinite or all-zero weights, and when drawing without replacement more samples than
// there are non-zero weights.
void multinomial(int64_t* out, const void* weights, ScalarType dtype, int64_t rows, int64_t n,
                 int64_t row_stride, int64_t col_stride, int64_t samples, bool replacement,
                 Mt19937Generator& g);

}  // namespace lamina::cpu
