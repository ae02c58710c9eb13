// Mixed radices (Cooley and Tukey) where the length has small factors, else Bluestein's
// convolution. Short rows are transformed several at a time, one in each lane of a vector.
#include "lamina/cpu/fft.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <utility>
#include <vector>

#include "lamina/core/error.h"
#include "lamina/cpu/fft_passes.h"
#include "lamina/cpu/packed.h"
#include "lamina/queue/parallel.h"

namespace lamina::cpu {
namespace {

using Number = std::complex<double>;
constexpr int kLanes = kFftLanes;
constexpr int64_t kAlone = 256;  // shortest rows that are taken apart when they come alone
constexpr int64_t kTogether =
    1 << 13;  // longest rows that go together: beyond, they leave the cache

void (*lanes_kernel())(const FftPass&) {
#if defined(__x86_64__)
  if (&packed_level() != &packed_baseline::kLevel) return fft_avx2::run;
#endif
  return fft_baseline::run;
}

// Products written out: operator* of std::complex looks for infinities.
Number times(Number a, Number b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// exp(-2 pi i k / n), from an angle of at most an eighth of a turn.
Number root(int64_t k, int64_t n) {
  const double eighths = 8.0 * static_cast<double>(k) / static_cast<double>(n);
  const int octant = static_cast<int>(eighths);
  const bool odd = octant & 1;
  const double rest = (static_cast<double>(8 * k - (octant + odd) * n) / static_cast<double>(n)) *
                      (std::numbers::pi / 4);
  double c = std::cos(rest), s = std::sin(rest);
  switch ((octant + odd) / 2 % 4) {
    case 1:
      std::swap(c, s);
      c = -c;
      break;
    case 2:
      c = -c;
      s = -s;
      break;
    case 3:
      std::swap(c, s);
      s = -s;
      break;
    default:
      break;
  }
  return {c, -s};
}

class Plan;
void run_alone(const Plan& plan, Number* data, Number* scratch);  // whichever way is quickest

class Plan {
 public:
  explicit Plan(int64_t n) : n_(n) {
    int64_t rest = n;
    for (const int64_t p : {4, 2, 3, 5})
      for (; rest % p == 0; rest /= p) factors_.push_back(p);
    for (int64_t p = 7; p <= kLargestRadix && p * p <= rest; p += 2)
      for (; rest % p == 0; rest /= p) factors_.push_back(p);
    if (rest > kLargestRadix) {
      plan_convolution();
      return;
    }
    if (rest > 1) factors_.push_back(rest);
    roots_.resize(static_cast<size_t>(n));
    for (int64_t k = 0; k < n; ++k) roots_[k] = root(k, n);
  }

  int64_t scratch() const { return inner_ ? 2 * inner_->n_ : n_; }
  int64_t length() const { return n_; }
  bool in_lanes() const { return !inner_ && n_ > 1 && n_ <= kTogether; }

  // Forward transforms of kLanes rows, laid out as FftPass says. Returns where they are afterwards:
  // x or y, of the same size.
  double* run_lanes(double* x, double* y) const {
    const auto run = lanes_kernel();
    int64_t done = 1, left = n_;
    for (const int64_t p : factors_) {
      left /= p;
      run({roots_.data(), n_, p, left, done, x, y});
      std::swap(x, y);
      done *= p;
    }
    return x;
  }

  // Forward; `scratch` has scratch() numbers.
  void run(Number* data, Number* scratch) const {
    if (n_ == 1) return;
    if (inner_) return convolve(data, scratch);
    std::copy(data, data + n_, scratch);
    step(data, scratch, n_, 1, 0);
  }

 private:
  void step(Number* out, const Number* in, int64_t n, int64_t stride, size_t level) const {
    const int64_t p = factors_[level], m = n / p;
    for (int64_t q = 0; q < p; ++q) {
      if (m == 1)
        out[q] = in[q * stride];
      else
        step(out + q * m, in + q * stride, m, stride * p, level + 1);
    }
    const int64_t whole = static_cast<int64_t>(roots_.size()), turn = whole / p;
    Number t[kLargestRadix], y[kLargestRadix];
    for (int64_t k = 0; k < m; ++k) {
      for (int64_t q = 0; q < p; ++q)
        t[q] = q && k ? times(out[q * m + k], roots_[q * k * stride]) : out[q * m + k];
      if (p == 2) {
        out[k] = t[0] + t[1];
        out[m + k] = t[0] - t[1];
        continue;
      }
      if (p == 4) {
        const Number a = t[0] + t[2], b = t[0] - t[2], c = t[1] + t[3], d = t[1] - t[3];
        const Number turned(d.imag(), -d.real());  // -i d
        out[k] = a + c;
        out[m + k] = b + turned;
        out[2 * m + k] = a - c;
        out[3 * m + k] = b - turned;
        continue;
      }
      for (int64_t r = 0; r < p; ++r) {
        Number sum = t[0];
        for (int64_t q = 1; q < p; ++q) sum += times(t[q], roots_[q * r % p * turn]);
        y[r] = sum;
      }
      for (int64_t r = 0; r < p; ++r) out[r * m + k] = y[r];
    }
  }

  // jk = (j^2 + k^2 - (k - j)^2) / 2 makes a transform of any length a convolution, which
  // transforms of a power of two compute.
  void plan_convolution() {
    factors_.clear();
    int64_t size = 1;
    while (size < 2 * n_ - 1) size *= 2;
    inner_ = std::make_unique<Plan>(size);
    chirp_.resize(static_cast<size_t>(n_));
    for (int64_t k = 0; k < n_; ++k)
      chirp_[k] =
          root(static_cast<int64_t>(static_cast<unsigned __int128>(k) * k % (2 * n_)), 2 * n_);
    kernel_.assign(static_cast<size_t>(size), 0);
    for (int64_t k = 0; k < n_; ++k) {
      kernel_[k] = std::conj(chirp_[k]);
      if (k) kernel_[size - k] = kernel_[k];
    }
    std::vector<Number> room(static_cast<size_t>(size));
    inner_->run(kernel_.data(), room.data());
  }
  void convolve(Number* data, Number* scratch) const {
    const int64_t size = inner_->n_;
    Number* room = scratch + size;
    for (int64_t k = 0; k < n_; ++k) scratch[k] = times(data[k], chirp_[k]);
    std::fill(scratch + n_, scratch + size, 0);
    run_alone(*inner_, scratch, room);
    for (int64_t k = 0; k < size; ++k) scratch[k] = std::conj(times(scratch[k], kernel_[k]));
    run_alone(*inner_, scratch, room);  // of the conjugate: the inverse, conjugated
    const double part = 1 / static_cast<double>(size);
    for (int64_t k = 0; k < n_; ++k) data[k] = times(std::conj(scratch[k]) * part, chirp_[k]);
  }

  int64_t n_;
  std::vector<int64_t> factors_;
  std::vector<Number> roots_;
  std::unique_ptr<Plan> inner_;
  std::vector<Number> chirp_, kernel_;
};

// Rows [begin, end), kLanes at a time. An inverse is the conjugate of the transform of the
// conjugate.
void run_together(const Plan& plan, Number* data, int64_t begin, int64_t end, int64_t n,
                  bool forward, double scale) {
  const auto half = static_cast<size_t>(n) * kLanes;
  std::vector<double> room(4 * half);
  const double sign = forward ? 1 : -1;
  for (int64_t r = begin; r < end; r += kLanes) {
    const int64_t rows = std::min<int64_t>(kLanes, end - r);
    double *x = room.data(), *y = x + 2 * half;
    for (int64_t l = 0; l < rows; ++l) {
      const Number* row = data + (r + l) * n;
      for (int64_t k = 0; k < n; ++k) {
        x[k * kLanes + l] = row[k].real();
        x[half + k * kLanes + l] = sign * row[k].imag();
      }
    }
    const double* done = plan.run_lanes(x, y);
    for (int64_t l = 0; l < rows; ++l) {
      Number* row = data + (r + l) * n;
      for (int64_t k = 0; k < n; ++k)
        row[k] = {scale * done[k * kLanes + l], sign * scale * done[half + k * kLanes + l]};
    }
  }
}

// A long row as a matrix of n1 rows and n2 columns: transforms of the columns, a turn of every
// number, transforms of the rows, and the matrix turned over (Bailey's way through the cache).
class LongPlan {
 public:
  LongPlan(int64_t n1, int64_t n2) : n1_(n1), n2_(n2), columns_(n1), rows_(n2) {
    const int64_t n = n1 * n2;
    while ((int64_t{1} << (2 * shift_)) < n) ++shift_;
    for (int64_t k = 0; k < int64_t{1} << shift_; ++k) fine_.push_back(root(k, n));
    for (int64_t k = 0; k <= n >> shift_; ++k) coarse_.push_back(root((k << shift_) % n, n));
  }

  int64_t length() const { return n1_ * n2_; }
  // Divisors of n whose transforms go in lanes and whose product is n; 0 where there are none.
  static std::pair<int64_t, int64_t> divisors(int64_t n) {
    int64_t a = 1, b = 1, rest = n;
    for (int64_t p = kLargestRadix; p > 1; --p)
      for (; rest % p == 0; rest /= p) (a < b ? a : b) *= p;
    return rest == 1 && std::max(a, b) <= kTogether && std::min(a, b) > 1
               ? std::pair{a, b}
               : std::pair<int64_t, int64_t>{};
  }

  void run(Number* data, bool forward, double scale) const {
    const double sign = forward ? 1 : -1;
    std::vector<Number> between(static_cast<size_t>(n1_ * n2_));
    // Column j of the matrix becomes row j of `between`.
    each(columns_, n1_, n2_, data, sign,
         [&](const double* done, size_t half, int64_t j, int64_t lanes) {
           for (int64_t l = 0; l < lanes; ++l)
             for (int64_t k = 0; k < n1_; ++k) {
               const int64_t turn = (j + l) * k;
               const Number w =
                   times(coarse_[turn >> shift_], fine_[turn & ((int64_t{1} << shift_) - 1)]);
               between[(j + l) * n1_ + k] =
                   times({done[k * kLanes + l], done[half + k * kLanes + l]}, w);
             }
         });
    each(rows_, n2_, n1_, between.data(), 1,
         [&](const double* done, size_t half, int64_t j, int64_t lanes) {
           for (int64_t k = 0; k < n2_; ++k)
             for (int64_t l = 0; l < lanes; ++l)
               data[k * n1_ + j + l] = {scale * done[k * kLanes + l],
                                        sign * scale * done[half + k * kLanes + l]};
         });
  }

 private:
  // Transforms the columns of a matrix of `length` rows, kLanes at a time, and hands them on.
  template <class F>
  static void each(const Plan& plan, int64_t length, int64_t columns, const Number* matrix,
                   double sign, F&& hand_on) {
    const auto half = static_cast<size_t>(length) * kLanes;
    const int64_t blocks = (columns + kLanes - 1) / kLanes;
    queue::parallel_for(
        0, blocks, std::max<int64_t>(1, 16384 / length / kLanes), [&](int64_t begin, int64_t end) {
          std::vector<double> room(4 * half);
          for (int64_t b = begin; b < end; ++b) {
            const int64_t j = b * kLanes, lanes = std::min<int64_t>(kLanes, columns - j);
            double *x = room.data(), *y = x + 2 * half;
            for (int64_t k = 0; k < length; ++k)
              for (int64_t l = 0; l < lanes; ++l) {
                const Number v = matrix[k * columns + j + l];
                x[k * kLanes + l] = v.real();
                x[half + k * kLanes + l] = sign * v.imag();
              }
            hand_on(plan.run_lanes(x, y), half, j, lanes);
          }
        });
  }

  int64_t n1_, n2_;
  int shift_ = 0;
  Plan columns_, rows_;
  std::vector<Number> coarse_, fine_;  // a turn is one of each
};

// The last plan of a short transform is kept: who asks for one asks for more of them.
std::shared_ptr<const Plan> plan_of(int64_t n) {
  thread_local std::shared_ptr<const Plan> last;
  if (last && last->length() == n) return last;
  auto plan = std::make_shared<const Plan>(n);
  if (n <= kTogether) last = plan;
  return plan;
}
std::shared_ptr<const LongPlan> long_plan_of(int64_t n) {
  thread_local std::shared_ptr<const LongPlan> last;
  if (last && last->length() == n) return last;
  const auto [n1, n2] = LongPlan::divisors(n);
  if (std::min(n1, n2) < kLanes) return nullptr;
  auto plan = std::make_shared<const LongPlan>(n1, n2);  // of a size like the root of n
  last = plan;
  return plan;
}

void run_alone(const Plan& plan, Number* data, Number* scratch) {
  if (plan.length() >= kAlone)
    if (const auto other = long_plan_of(plan.length())) return other->run(data, true, 1);
  plan.run(data, scratch);
}

}  // namespace

void fft_rows(Number* data, int64_t rows, int64_t n, bool forward, double scale) {
  if (rows == 0 || n == 0) return;
  LAMINA_CHECK(n <= int64_t{1} << 40, "fft: a dimension is too large; got ", n);
  // Alone, a row of some length would leave most lanes empty.
  if (n > kTogether || (n >= kAlone && rows < kLanes / 2))
    if (const auto plan = long_plan_of(n)) {
      for (int64_t r = 0; r < rows; ++r) plan->run(data + r * n, forward, scale);
      return;
    }
  const std::shared_ptr<const Plan> kept = plan_of(n);
  const Plan& plan = *kept;
  const bool together = plan.in_lanes();
  const int64_t grain = std::max<int64_t>(together ? kLanes : 1, 16384 / n / kLanes * kLanes);
  queue::parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    if (together) return run_together(plan, data, begin, end, n, forward, scale);
    std::vector<Number> scratch(static_cast<size_t>(plan.scratch()));
    for (int64_t r = begin; r < end; ++r) {
      Number* row = data + r * n;
      if (!forward)
        for (int64_t k = 0; k < n; ++k) row[k] = std::conj(row[k]);
      plan.run(row, scratch.data());
      for (int64_t k = 0; k < n; ++k) row[k] = (forward ? row[k] : std::conj(row[k])) * scale;
    }
  });
}

}  // namespace lamina::cpu
