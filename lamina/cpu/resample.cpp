#include "lamina/cpu/resample.h"

#include <algorithm>
#include <cmath>

#include "lamina/queue/parallel.h"

namespace lamina::cpu {

namespace {

// Keys' cubic convolution at distances 1 + t, t, 1 - t, 2 - t.
template <class R>
void cubic_weights(R t, R (&w)[4]) {
  constexpr R a = R(-0.75);
  const auto near = [](R x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
  const auto far = [](R x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
  w[0] = far(t + 1);
  w[1] = near(t);
  w[2] = near(1 - t);
  w[3] = far(2 - t);
}

template <class R>
R area_filter(Resample mode, R x) {
  x = std::abs(x);
  if (mode == Resample::AreaLinear) return x < 1 ? 1 - x : 0;
  constexpr R a = R(-0.5);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

template <class R>
void fill(ResampleAxis& axis, Resample mode, bool align_corners, std::optional<double> given) {
  const int64_t in = axis.in, out = axis.out;
  const bool has = given && *given > 0;
  const R ratio = has ? static_cast<R>(1.0 / *given) : static_cast<R>(in) / static_cast<R>(out);
  const R scale =
      align_corners ? (out > 1 ? static_cast<R>(in - 1) / static_cast<R>(out - 1) : R(0)) : ratio;
  const auto put = [&](int64_t index, R weight) {
    axis.index.push_back(std::clamp<int64_t>(index, 0, in - 1));
    axis.weight.push_back(static_cast<double>(weight));
  };
  for (int64_t o = 0; o < out; ++o) {
    switch (mode) {
      case Resample::Nearest: {
        const float step = has ? static_cast<float>(1.0 / *given)
                               : static_cast<float>(in) / static_cast<float>(out);
        const auto i =
            static_cast<int64_t>(std::floor(std::min(static_cast<float>(o) * step, 0x1p62F)));
        put(std::min(i, in - 1), 1);
        break;
      }
      case Resample::NearestExact: {
        const float step = has ? static_cast<float>(1.0 / *given)
                               : static_cast<float>(in) / static_cast<float>(out);
        const auto at =
            static_cast<float>((static_cast<double>(o) + 0.5) * static_cast<double>(step));
        put(static_cast<int64_t>(std::floor(std::min(at, 0x1p62F))), 1);
        break;
      }
      case Resample::Linear: {
        R at = align_corners ? scale * static_cast<R>(o)
                             : std::max(scale * (static_cast<R>(o) + R(0.5)) - R(0.5), R(0));
        if (in == out) at = static_cast<R>(o);  // a copy, whatever the factor
        at = std::min(at, R(0x1p62));
        const int64_t i = std::min(static_cast<int64_t>(at), in - 1);
        const R t = std::clamp(at - static_cast<R>(i), R(0), R(1));
        put(i, 1 - t);
        put(i + (i < in - 1), t);
        break;
      }
      case Resample::Cubic: {
        R at = align_corners ? scale * static_cast<R>(o)
                             : scale * (static_cast<R>(o) + R(0.5)) - R(0.5);
        at = std::min(at, R(0x1p62));
        const int64_t i = std::min(static_cast<int64_t>(std::floor(at)), in - 1);
        const R t = std::clamp(at - static_cast<R>(i), R(0), R(1));
        R w[4];
        cubic_weights(t, w);
        for (int64_t j = 0; j < 4; ++j) put(i - 1 + j, w[j]);
        break;
      }
      default: {
        const R reach = mode == Resample::AreaLinear ? R(1) : R(2);
        const R support = scale >= 1 ? reach * scale : reach;
        const R inverse = scale >= 1 ? 1 / scale : R(1);
        const R middle = scale * (static_cast<R>(o) + R(0.5));
        const auto bound = [&](R x) {
          return std::clamp<int64_t>(static_cast<int64_t>(std::clamp(x, R(0), R(0x1p62))), 0, in);
        };
        const int64_t first = std::min(bound(middle - support + R(0.5)), in - 1);
        const int64_t last = std::max(bound(middle + support + R(0.5)), first + 1);
        std::vector<R> w;
        R total = 0;
        for (int64_t i = first; i < last; ++i) {
          w.push_back(area_filter(mode, (static_cast<R>(i) - middle + R(0.5)) * inverse));
          total += w.back();
        }
        for (int64_t i = first; i < last; ++i)
          put(i, total != 0 ? w[static_cast<size_t>(i - first)] / total
                            : w[static_cast<size_t>(i - first)]);
        axis.first.push_back(static_cast<int64_t>(axis.index.size()) - (last - first));
        axis.count.push_back(last - first);
        continue;
      }
    }
    const int64_t width = mode == Resample::Cubic ? 4 : mode == Resample::Linear ? 2 : 1;
    axis.first.push_back(static_cast<int64_t>(axis.index.size()) - width);
    axis.count.push_back(width);
  }
}

struct Taps {
  const ResampleAxis& axis;
  // f(source index, weight) for each weight of place o that is not zero.
  template <class F>
  void each(int64_t o, F&& f) const {
    const auto first = static_cast<size_t>(axis.first[static_cast<size_t>(o)]);
    const auto count = static_cast<size_t>(axis.count[static_cast<size_t>(o)]);
    for (size_t i = first; i < first + count; ++i)
      if (axis.weight[i] != 0) f(axis.index[i], axis.weight[i]);
  }
};

template <class F>
void each_plane(const std::array<ResampleAxis, 3>& axes, int64_t planes, F&& f) {
  int64_t work = 1;
  for (const ResampleAxis& a : axes) work *= std::max<int64_t>({a.in, a.out, 1});
  queue::parallel_for(0, planes, std::max<int64_t>(1, 32768 / work),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t p = begin; p < end; ++p) f(p);
                      });
}

}  // namespace

ResampleAxis resample_axis(Resample mode, int64_t in, int64_t out, bool align_corners,
                           std::optional<double> scale, bool wide) {
  ResampleAxis axis;
  axis.in = in;
  axis.out = out;
  if (wide)
    fill<double>(axis, mode, align_corners, scale);
  else
    fill<float>(axis, mode, align_corners, scale);
  return axis;
}

namespace {

// Two elements and two weights for each place of a row; a weight of zero leaves its element out.
template <class T>
struct Pairs {
  std::vector<int64_t> a, b;
  std::vector<T> wa, wb;

  explicit Pairs(const ResampleAxis& axis) {
    for (size_t o = 0; o < axis.first.size(); ++o) {
      const auto i = static_cast<size_t>(axis.first[o]);
      const bool two = axis.count[o] == 2 && axis.weight[i + 1] != 0;
      a.push_back(axis.index[i]);
      wa.push_back(static_cast<T>(axis.weight[i]));
      b.push_back(two ? axis.index[i + 1] : 0);
      wb.push_back(two ? static_cast<T>(axis.weight[i + 1]) : T(0));
    }
  }
  void row(const T* in, T* out) const {
    for (size_t o = 0; o < a.size(); ++o) {
      T sum = wa[o] * in[a[o]];
      if (wb[o] != 0) sum += wb[o] * in[b[o]];
      out[o] = sum;
    }
  }
};

bool at_most(const ResampleAxis& axis, int64_t count) {
  return std::all_of(axis.count.begin(), axis.count.end(), [&](int64_t c) { return c <= count; });
}

// One element for each place: rows are gathered, and a row that comes again is copied.
template <class T>
void gather(const std::array<ResampleAxis, 3>& axes, int64_t planes, const T* in, T* out) {
  const int64_t lines = axes[1].in, width = axes[2].in, to_width = axes[2].out;
  each_plane(axes, planes, [&](int64_t p) {
    const T* plane = in + p * axes[0].in * lines * width;
    T* to = out + p * axes[0].out * axes[1].out * to_width;
    for (const int64_t iz : axes[0].index) {
      const T* before = nullptr;
      for (const int64_t iy : axes[1].index) {
        const T* row = plane + (iz * lines + iy) * width;
        if (row == before)
          std::copy_n(to - to_width, to_width, to);
        else
          for (int64_t x = 0; x < to_width; ++x) to[x] = row[axes[2].index[static_cast<size_t>(x)]];
        before = row;
        to += to_width;
      }
    }
  });
}

}  // namespace

// Rows are combined first, whole; then each place of the result's row takes its elements.
template <class T>
void resample(const std::array<ResampleAxis, 3>& axes, int64_t planes, const T* in, T* out) {
  if (at_most(axes[0], 1) && at_most(axes[1], 1) && at_most(axes[2], 1))
    return gather(axes, planes, in, out);
  const Taps z{axes[0]}, y{axes[1]}, x{axes[2]};
  const int64_t lines = axes[1].in, width = axes[2].in;
  const bool paired = at_most(axes[2], 2);
  const Pairs<T> pairs(paired ? axes[2] : ResampleAxis{});
  each_plane(axes, planes, [&](int64_t p) {
    const T* plane = in + p * axes[0].in * lines * width;
    T* to = out + p * axes[0].out * axes[1].out * axes[2].out;
    std::vector<T> combined(static_cast<size_t>(width));
    T* line = combined.data();
    for (int64_t oz = 0; oz < axes[0].out; ++oz)
      for (int64_t oy = 0; oy < axes[1].out; ++oy) {
        bool first = true;
        z.each(oz, [&](int64_t iz, double wz) {
          y.each(oy, [&](int64_t iy, double wy) {
            const T* row = plane + (iz * lines + iy) * width;
            const T w = static_cast<T>(wz) * static_cast<T>(wy);
            if (first)
              for (int64_t i = 0; i < width; ++i) line[i] = w * row[i];
            else
              for (int64_t i = 0; i < width; ++i) line[i] += w * row[i];
            first = false;
          });
        });
        if (first) std::fill_n(line, width, T(0));
        if (paired) {
          pairs.row(line, to);
          to += axes[2].out;
          continue;
        }
        for (int64_t ox = 0; ox < axes[2].out; ++ox) {
          T sum = 0;
          x.each(ox, [&](int64_t ix, double w) { sum += static_cast<T>(w) * line[ix]; });
          *to++ = sum;
        }
      }
  });
}

namespace {

// Weights as multiples of 2^-bits that fit 16 bits.
struct FixedWeights {
  std::vector<int32_t> weight;
  int bits = 0;

  explicit FixedWeights(const ResampleAxis& axis) {
    double largest = 0;
    for (const double w : axis.weight) largest = std::max(largest, w);
    while (bits < 22 &&
           static_cast<int64_t>(0.5 + largest * static_cast<double>(2 << bits)) < 1 << 15)
      ++bits;
    for (const double w : axis.weight) {
      const double scaled = w * static_cast<double>(1 << bits);
      weight.push_back(static_cast<int32_t>(scaled + (scaled < 0 ? -0.5 : 0.5)));
    }
  }
};

// One place of an axis, rounded; elements are `stride` apart.
template <class T>
int64_t rounded_at(const ResampleAxis& axis, const FixedWeights& fixed, int64_t o, const T* in,
                   int64_t stride) {
  const auto first = static_cast<size_t>(axis.first[static_cast<size_t>(o)]);
  const auto count = static_cast<size_t>(axis.count[static_cast<size_t>(o)]);
  int64_t sum = int64_t{1} << fixed.bits >> 1;
  for (size_t i = first; i < first + count; ++i)
    sum += int64_t{fixed.weight[i]} * in[axis.index[i] * stride];
  return sum >> fixed.bits;
}

}  // namespace

void resample_bytes(const std::array<ResampleAxis, 3>& axes, int64_t planes, const uint8_t* in,
                    uint8_t* out) {
  const ResampleAxis &y = axes[1], &x = axes[2];
  const FixedWeights fixed_y(y), fixed_x(x);
  each_plane(axes, planes, [&](int64_t p) {
    // Not clamped between the passes: a cubic overshoots, and the second pass may take it back.
    std::vector<int32_t> lines(static_cast<size_t>(y.in * x.out));
    for (int64_t i = 0; i < y.in; ++i)
      for (int64_t o = 0; o < x.out; ++o)
        lines[static_cast<size_t>(i * x.out + o)] =
            static_cast<int32_t>(rounded_at(x, fixed_x, o, in + (p * y.in + i) * x.in, 1));
    for (int64_t i = 0; i < y.out; ++i)
      for (int64_t o = 0; o < x.out; ++o)
        out[(p * y.out + i) * x.out + o] = static_cast<uint8_t>(
            std::clamp<int64_t>(rounded_at(y, fixed_y, i, lines.data() + o, x.out), 0, 255));
  });
}

template <class T>
void resample_backward(const std::array<ResampleAxis, 3>& axes, int64_t planes, const T* grad,
                       T* in_grad) {
  const Taps z{axes[0]}, y{axes[1]}, x{axes[2]};
  const int64_t lines = axes[1].in, width = axes[2].in;
  each_plane(axes, planes, [&](int64_t p) {
    T* plane = in_grad + p * axes[0].in * lines * width;
    std::fill_n(plane, axes[0].in * lines * width, T(0));
    const T* from = grad + p * axes[0].out * axes[1].out * axes[2].out;
    std::vector<T> line(static_cast<size_t>(width));
    for (int64_t oz = 0; oz < axes[0].out; ++oz)
      for (int64_t oy = 0; oy < axes[1].out; ++oy) {
        std::fill(line.begin(), line.end(), T(0));
        for (int64_t ox = 0; ox < axes[2].out; ++ox) {
          const T g = *from++;
          x.each(ox, [&](int64_t ix, double w) {
            line[static_cast<size_t>(ix)] += static_cast<T>(w) * g;
          });
        }
        z.each(oz, [&](int64_t iz, double wz) {
          y.each(oy, [&](int64_t iy, double wy) {
            T* row = plane + (iz * lines + iy) * width;
            const T w = static_cast<T>(wz) * static_cast<T>(wy);
            for (int64_t i = 0; i < width; ++i) row[i] += w * line[static_cast<size_t>(i)];
          });
        });
      }
  });
}

template void resample<float>(const std::array<ResampleAxis, 3>&, int64_t, const float*, float*);
template void resample<double>(const std::array<ResampleAxis, 3>&, int64_t, const double*, double*);
template void resample_backward<float>(const std::array<ResampleAxis, 3>&, int64_t, const float*,
                                       float*);
template void resample_backward<double>(const std::array<ResampleAxis, 3>&, int64_t, const double*,
                                        double*);

}  // namespace lamina::cpu
