// Normalizations: rows and channels around the kernels of loops/norms.cpp.
#include "lamina/tile/norm.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "lamina/core/error.h"
#include "lamina/event/event.h"
#include "lamina/queue/parallel.h"
#include "lamina/tile/level.h"

namespace lamina::tile {

namespace {

// Numbers of type float or double behind an untyped address.
class Numbers {
 public:
  Numbers(ScalarType type, const void* data)
      : wide_(type == ScalarType::Float64), data_(static_cast<char*>(const_cast<void*>(data))) {}
  explicit operator bool() const { return data_ != nullptr; }
  char* at(int64_t i) const { return data_ ? data_ + i * (wide_ ? 8 : 4) : nullptr; }
  double get(int64_t i, double absent) const {
    if (!data_) return absent;
    return wide_ ? reinterpret_cast<double*>(data_)[i] : double(reinterpret_cast<float*>(data_)[i]);
  }
  void set(int64_t i, double v) const {
    if (!data_) return;
    if (wide_)
      reinterpret_cast<double*>(data_)[i] = v;
    else
      reinterpret_cast<float*>(data_)[i] = float(v);
  }
  void add(Numbers other, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) set(i, get(i, 0) + other.get(i, 0));
  }

 private:
  bool wide_;
  char* data_;
};

const NormKernels& kernels_of(ScalarType type) {
  if (event::listening()) [[unlikely]]
    event::report({"tile rows", "normalization", isa_name().data(), 0});
  LAMINA_INTERNAL_CHECK(type == ScalarType::Float32 || type == ScalarType::Float64,
                        "a normalization computes in float32 or float64; got ", type);
  return level().rows[memory_slot(type)].norm;
}

int64_t rows_a_task(int64_t n) { return std::max<int64_t>(1, kParallelGrain / (n + 1)); }

}  // namespace

void normalize_rows(const RowNorm& call, void* out, void* mean, void* rstd, const void* x,
                    const void* bias, double eps) {
  const NormKernels& k = kernels_of(call.type);
  const Numbers o(call.type, out), in(call.type, x), means(call.type, mean), rstds(call.type, rstd);
  queue::parallel_for(0, call.rows, rows_a_task(call.n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      double m, s;
      k.forward(o.at(r * call.n), &m, &s, in.at(r * call.n), call.weight, bias, eps, call.centered,
                call.n);
      means.set(r, m);
      rstds.set(r, s);
    }
  });
}

void normalize_rows_backward(const RowNorm& call, void* dx, void* weight_grad, void* bias_grad,
                             const void* grad, const void* x, const void* mean, const void* rstd) {
  const NormKernels& k = kernels_of(call.type);
  const int64_t n = call.n, item = call.type == ScalarType::Float64 ? 8 : 4;
  const Numbers d(call.type, dx), g(call.type, grad), in(call.type, x), means(call.type, mean),
      rstds(call.type, rstd);
  const bool parameters = weight_grad || bias_grad;
  // Rows of one task share sums for weight and bias; the tasks' sums are added in order.
  const int64_t grain = std::max<int64_t>(rows_a_task(n), 16);
  const int64_t tasks = (call.rows + grain - 1) / grain;
  std::vector<char> sums;
  if (parameters) sums.resize(static_cast<size_t>(tasks * 2 * n * item));
  queue::parallel_for(0, call.rows, grain, [&](int64_t begin, int64_t end) {
    char* dw = parameters ? sums.data() + begin / grain * 2 * n * item : nullptr;
    for (int64_t r = begin; r < end; ++r) {
      const double m = means.get(r, 0), s = rstds.get(r, 1);
      if (d)
        k.backward(d.at(r * n), g.at(r * n), in.at(r * n), call.weight, m, s, call.centered, n);
      if (parameters)
        k.add_parameters(weight_grad ? dw : nullptr, bias_grad ? dw + n * item : nullptr,
                         g.at(r * n), in.at(r * n), m, s, n);
    }
  });
  if (!parameters) return;
  for (int part = 0; part < 2; ++part) {
    const Numbers total(call.type, part == 0 ? weight_grad : bias_grad);
    if (!total) continue;
    std::memset(total.at(0), 0, static_cast<size_t>(n * item));
    for (int64_t t = 0; t < tasks; ++t)
      total.add(Numbers(call.type, sums.data() + (t * 2 + part) * n * item), n);
  }
}

namespace {

// How many statistics there are, and which runs of `inner` values belong to one.
struct Runs {
  int64_t statistics, samples, channels;  // samples and channels of one statistic
  explicit Runs(const ChannelNorm& c)
      : statistics(c.across_samples ? c.channels : c.samples * (c.channels / c.group)),
        samples(c.across_samples ? c.samples : 1),
        channels(c.across_samples ? 1 : c.group) {}
  // Calls f(position of the run in units of `inner`, its channel).
  template <class F>
  void each(const ChannelNorm& c, int64_t statistic, F&& f) const {
    if (c.across_samples) {
      for (int64_t s = 0; s < samples; ++s) f(s * c.channels + statistic, statistic);
    } else {
      const int64_t groups = c.channels / c.group;
      const int64_t sample = statistic / groups, first = statistic % groups * c.group;
      for (int64_t i = 0; i < c.group; ++i) f(sample * c.channels + first + i, first + i);
    }
  }
  int64_t grain(const ChannelNorm& c) const { return rows_a_task(samples * channels * c.inner); }
};

}  // namespace

void channel_moments(const ChannelNorm& call, double* mean, double* squares, const void* x) {
  const auto moments = level().rows[memory_slot(call.type)].moments;
  const Numbers in(call.type, x);
  const Runs runs(call);
  queue::parallel_for(0, runs.statistics, runs.grain(call), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      // Chan, Golub and LeVeque (1979): moments of two sets from those of each.
      double m = 0, m2 = 0, count = 0;
      runs.each(call, i, [&](int64_t run, int64_t) {
        double part, part2;
        moments(&part, &part2, in.at(run * call.inner), call.inner);
        const double total = count + double(call.inner), apart = part - m;
        m += apart * double(call.inner) / total;
        m2 += part2 + apart * apart * count * double(call.inner) / total;
        count = total;
      });
      mean[i] = m;
      squares[i] = m2;
    }
  });
}

void normalize_channels(const ChannelNorm& call, void* out, const void* mean, const void* rstd,
                        const void* x, const void* bias) {
  const NormKernels& k = kernels_of(call.type);
  const Numbers o(call.type, out), in(call.type, x), means(call.type, mean), rstds(call.type, rstd),
      w(call.type, call.weight), b(call.type, bias);
  const Runs runs(call);
  queue::parallel_for(0, runs.statistics, runs.grain(call), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double m = means.get(i, 0), s = rstds.get(i, 1);
      runs.each(call, i, [&](int64_t run, int64_t channel) {
        const double a = s * w.get(channel, 1);
        k.affine(o.at(run * call.inner), in.at(run * call.inner), a, b.get(channel, 0) - m * a,
                 call.inner);
      });
    }
  });
}

void normalize_channels_backward(const ChannelNorm& call, void* dx, void* weight_grad,
                                 void* bias_grad, const void* grad, const void* x, const void* mean,
                                 const void* rstd, bool constant) {
  const NormKernels& k = kernels_of(call.type);
  const Numbers d(call.type, dx), g(call.type, grad), in(call.type, x), means(call.type, mean),
      rstds(call.type, rstd), w(call.type, call.weight);
  const Runs runs(call);
  const int64_t count = runs.samples * runs.channels * call.inner;
  // Sums of grad and of grad * (x - mean), a run.
  const int64_t num_runs = call.samples * call.channels;
  std::vector<double> sums(static_cast<size_t>(2 * num_runs));
  queue::parallel_for(0, runs.statistics, runs.grain(call), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double m = means.get(i, 0), s = rstds.get(i, 1);
      double sum = 0, products = 0;
      runs.each(call, i, [&](int64_t run, int64_t channel) {
        double* part = sums.data() + 2 * run;
        k.product_sums(part, part + 1, g.at(run * call.inner), in.at(run * call.inner), m,
                       call.inner);
        sum += part[0] * w.get(channel, 1);
        products += part[1] * w.get(channel, 1);
      });
      if (!d) continue;
      const double slope = constant ? 0 : -products * s * s * s / double(count),
                   shift = constant ? 0 : -sum * s / double(count);
      runs.each(call, i, [&](int64_t run, int64_t channel) {
        k.affine2(d.at(run * call.inner), g.at(run * call.inner), in.at(run * call.inner), m,
                  s * w.get(channel, 1), slope, shift, call.inner);
      });
    }
  });
  const Numbers dw(call.type, weight_grad), db(call.type, bias_grad);
  if (!dw && !db) return;
  for (int64_t c = 0; c < call.channels; ++c) {
    double weight_sum = 0, bias_sum = 0;
    for (int64_t n = 0; n < call.samples; ++n) {
      const int64_t run = n * call.channels + c;
      const int64_t statistic =
          call.across_samples ? c : n * (call.channels / call.group) + c / call.group;
      weight_sum += sums[2 * run + 1] * rstds.get(statistic, 1);
      bias_sum += sums[2 * run];
    }
    dw.set(c, weight_sum);
    db.set(c, bias_sum);
  }
}

}  // namespace lamina::tile
