// The zero-padded copy of what a block of output points reads.
#include <algorithm>
#include <cstring>

#include "lamina/core/error.h"
#include "lamina/cpu/conv_taps.h"

namespace lamina::cpu {

namespace {

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

}  // namespace

std::vector<Window::Residue> Window::residues(const TapAxis& axis,
                                              std::vector<int64_t>* tap_residue) {
  std::vector<Residue> found;
  for (const int64_t t : axis.taps) {
    const int64_t q = floor_div(t, axis.step), r = t - q * axis.step;
    size_t i = 0;
    while (i < found.size() && found[i].value != r) ++i;
    if (i == found.size()) found.push_back({r, q, q});
    found[i].first = std::min(found[i].first, q);
    found[i].last = std::max(found[i].last, q);
    tap_residue->push_back(static_cast<int64_t>(i));
  }
  return found;
}

Window::Window(const TapAxis& y, const TapAxis& x, int64_t rows, int64_t width)
    : y_step_(y.step), x_step_(x.step), y_in_(y.in), x_in_(x.in) {
  std::vector<int64_t> y_of, x_of;
  ys_ = residues(y, &y_of);
  xs_ = residues(x, &x_of);
  int64_t halo = 0, shared = width == x.out ? INT64_MAX : 0, lines = 0;
  for (const Residue& r : xs_) {
    halo = std::max(halo, r.last - r.first);
    // Zeros before the first and after the last element of a row.
    const int64_t before = std::max<int64_t>(0, -r.first);
    const int64_t held = ceil_div(x.in - r.value, x.step);
    const int64_t after = std::max<int64_t>(0, x.out + r.last - held);
    shared = std::min({shared, before, after});
  }
  for (const Residue& r : ys_) lines = std::max(lines, r.last - r.first);
  if (xs_.empty()) shared = 0;
  // A dilation of a billion would need a copy that no memory holds.
  LAMINA_CHECK_KIND(ErrorKind::OutOfMemory,
                    (static_cast<double>(width) + static_cast<double>(halo)) *
                            (static_cast<double>(rows) + static_cast<double>(lines) + 2) <
                        0x1p40,
                    "convolution: the padded copy of the input would not fit any memory; got ",
                    lines, " lines and ", halo, " columns between the first and the last tap");
  pitch_ = width + halo - std::min(shared, halo);
  lines_ = rows + lines;
  // Slack for the last row's zeros and for points past the end, which count for nothing.
  const int64_t part = lines_ * pitch_ + std::min(shared, halo) + 16;
  plane_ = part * static_cast<int64_t>(ys_.size() * xs_.size());
  for (size_t i = 0; i < y.taps.size(); ++i)
    for (size_t j = 0; j < x.taps.size(); ++j) {
      const Residue &ry = ys_[y_of[i]], &rx = xs_[x_of[j]];
      const int64_t qy = floor_div(y.taps[i], y.step), qx = floor_div(x.taps[j], x.step);
      offsets_.push_back((y_of[i] * static_cast<int64_t>(xs_.size()) + x_of[j]) * part +
                         (qy - ry.first) * pitch_ + qx - rx.first);
    }
}

void Window::fill(const ConvKernels& kernels, ScalarType type, const void* source, int64_t y_stride,
                  int64_t x_stride, int64_t y0, int64_t rows, int64_t x0, int64_t width,
                  void* out) const {
  const auto item = static_cast<int64_t>(kernels.item);
  if (!source) {
    std::memset(out, 0, static_cast<size_t>(plane_ * item));
    return;
  }
  const auto from_item = static_cast<int64_t>(item_size(type));
  const int64_t part = plane_ / static_cast<int64_t>(ys_.size() * xs_.size());
  auto* to = static_cast<char*>(out);
  for (const Residue& ry : ys_)
    for (const Residue& rx : xs_) {
      // The row holds q from x0 + first on; those in 0..held lie in the source.
      const int64_t length = width + rx.last - rx.first, first = x0 + rx.first;
      const int64_t held = std::max<int64_t>(0, ceil_div(x_in_ - rx.value, x_step_));
      const int64_t begin = std::clamp<int64_t>(-first, 0, length);
      const int64_t end = std::clamp<int64_t>(held - first, begin, length);
      const int64_t lines = rows + ry.last - ry.first;
      // Lines [top, bottom) lie in the source.
      const int64_t held_lines = std::max<int64_t>(0, ceil_div(y_in_ - ry.value, y_step_));
      const int64_t top = std::clamp<int64_t>(-(y0 + ry.first), 0, lines);
      const int64_t bottom =
          begin == end ? top : std::clamp<int64_t>(held_lines - (y0 + ry.first), top, lines);
      // Shared zeros at the end of a row are those of the next row's begin.
      const int64_t used = (lines - 1) * pitch_ + length;
      if (begin > 0 || end < length || top > 0 || bottom < lines)
        std::memset(to, 0, static_cast<size_t>(part * item));
      else
        std::memset(to + used * item, 0, static_cast<size_t>((part - used) * item));
      // Steps that nothing takes may be larger than any tensor.
      if (top < bottom) {
        const char* from = static_cast<const char*>(source) +
                           (((y0 + ry.first + top) * y_step_ + ry.value) * y_stride +
                            ((first + begin) * x_step_ + rx.value) * x_stride) *
                               from_item;
        const int64_t stride = end - begin > 1 ? x_step_ * x_stride : 1;
        const int64_t line = bottom - top > 1 ? y_step_ * y_stride : 0;
        char* row = to + (top * pitch_ + begin) * item;
        if (stride == 1 && from_item == item)
          kernels.copy(row, pitch_, from, line, end - begin, bottom - top);
        else
          for (int64_t l = top; l < bottom; ++l, row += pitch_ * item, from += line * from_item)
            kernels.load(row, from, type, end - begin, stride);
      }
      to += part * item;
    }
}

}  // namespace lamina::cpu
