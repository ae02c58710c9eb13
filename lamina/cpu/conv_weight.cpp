// The derivative by the weight: dot products of lines of the gradient with lines of a window, over
// all points of the output.
#include <algorithm>
#include <cstring>

#include "lamina/cpu/conv_taps.h"
#include "lamina/cpu/scratch.h"
#include "lamina/event/event.h"
#include "lamina/queue/parallel.h"

namespace lamina::cpu {

namespace {

constexpr int64_t kPoints = 1024;  // of the output, about, that are held at once
constexpr int64_t kHeldBytes = 96 * 1024;
constexpr int64_t kBlockRows = 96;    // output channels of a block
constexpr int64_t kBlockLanes = 288;  // weights of one output channel in a block
constexpr int64_t kSplits = 16;       // of the points
constexpr int64_t kSplitWork = 1 << 20;
constexpr int64_t kSplitBytes = 16 << 20;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

class WeightGrad {
 public:
  WeightGrad(const ConvSizes& s, ScalarType dtype, const ConvArray& grad, const ConvArray& input,
             const ConvArray& target);
  void run();

 private:
  void block(int64_t index, char* scratch, char* sums) const;
  void finish(int64_t group, int64_t row, const char* sums) const;

  const ConvSizes& s_;
  ScalarType dtype_;
  const ConvArray &grad_, &input_, &target_;
  const ConvKernels& k_;
  int64_t item_, from_item_;
  TapAxis axes_[3];
  int64_t taps_, depth_, planes_, lanes_;
  int64_t lines_ = 1, width_ = 1, images_ = 1;  // of a piece of the points
  int64_t line_pieces_, width_pieces_, image_pieces_, pieces_;
  int64_t rows_, planes_of_block_, row_blocks_, plane_blocks_, splits_;
  bool joins_lines_;  // in a product; what lies between them does not count
  int64_t grad_pitch_, grad_image_, grad_bytes_;
  std::vector<Window> window_;  // one
};

WeightGrad::WeightGrad(const ConvSizes& s, ScalarType dtype, const ConvArray& grad,
                       const ConvArray& input, const ConvArray& target)
    : s_(s),
      dtype_(dtype),
      grad_(grad),
      input_(input),
      target_(target),
      k_(conv_kernels(dtype)),
      item_(static_cast<int64_t>(k_.item)),
      from_item_(static_cast<int64_t>(item_size(dtype))) {
  for (int i = 0; i < 3; ++i) {
    axes_[i] = {s.output[i], s.input[i], s.stride[i], {}, {}};
    for (int64_t j = 0; j < s.kernel[i]; ++j)
      axes_[i].taps.push_back(j * s.dilation[i] - s.padding[i]);
  }
  depth_ = s.kernel[0];
  taps_ = s.kernel[1] * s.kernel[2];
  planes_ = s.in_channels * depth_;
  lanes_ = planes_ * taps_;

  width_ = std::min(s.output[2], kPoints);
  lines_ = std::clamp<int64_t>(kPoints / width_, 1, s.output[1]);
  lines_ = ceil_div(s.output[1], ceil_div(s.output[1], lines_));
  line_pieces_ = ceil_div(s.output[1], lines_);
  width_pieces_ = ceil_div(s.output[2], width_);
  window_.emplace_back(axes_[1], axes_[2], lines_, width_);
  const int64_t pitch = window_.front().pitch();
  joins_lines_ = k_.has_masks && ceil_div((lines_ - 1) * pitch + width_, k_.lanes) <=
                                     lines_ * ceil_div(width_, k_.lanes);
  grad_pitch_ = joins_lines_ ? pitch : round_up(width_, k_.lanes);

  row_blocks_ = ceil_div(s.out_channels, kBlockRows);
  rows_ = ceil_div(s.out_channels, row_blocks_);
  planes_of_block_ = std::clamp<int64_t>(kBlockLanes / taps_, 1, planes_);
  plane_blocks_ = ceil_div(planes_, planes_of_block_);
  planes_of_block_ = ceil_div(planes_, plane_blocks_);
  // Small images go together, so that the sums over vectors are worth their end.
  const int64_t image =
      (planes_of_block_ * window_.front().plane() + rows_ * lines_ * grad_pitch_) * item_;
  if (line_pieces_ == 1 && width_pieces_ == 1)
    images_ =
        std::clamp<int64_t>(std::min(kPoints / (lines_ * width_), kHeldBytes / image), 1, s.batch);
  image_pieces_ = ceil_div(s.batch, images_);
  pieces_ = image_pieces_ * s.output[0] * line_pieces_ * width_pieces_;
  // Whole vectors are read, behind the last line, too.
  grad_image_ = round_up(lines_ * grad_pitch_, k_.lanes);
  grad_bytes_ = round_up((images_ * rows_ * grad_image_ + k_.lanes) * item_, 64);

  const double points = static_cast<double>(s.batch) * static_cast<double>(s.output[0]) *
                        static_cast<double>(s.output[1]) * static_cast<double>(s.output[2]);
  const double work =
      points * static_cast<double>(rows_) * static_cast<double>(planes_of_block_ * taps_);
  splits_ =
      std::min({kSplits, pieces_, static_cast<int64_t>(work / kSplitWork) + 1,
                std::max<int64_t>(1, kSplitBytes / (s.groups * s.out_channels * lanes_ * item_))});
}

void WeightGrad::block(int64_t index, char* scratch, char* sums) const {
  const int64_t split = index % splits_;
  index /= splits_;
  const int64_t pb = index % plane_blocks_;
  index /= plane_blocks_;
  const int64_t rb = index % row_blocks_, group = index / row_blocks_;
  const int64_t r0 = rb * rows_, rows = std::min(rows_, s_.out_channels - r0);
  const int64_t p0 = pb * planes_of_block_, planes = std::min(planes_of_block_, planes_ - p0);
  const Window& w = window_.front();
  char* window = scratch + grad_bytes_;
  std::vector<int64_t> offsets;
  for (int64_t p = 0; p < planes; ++p)
    for (const int64_t o : w.offsets()) offsets.push_back(p * images_ * w.plane() + o);

  ConvDots d;
  d.a_stride = images_ * grad_image_;
  d.a = scratch;
  d.a_image = grad_image_;
  d.a_line = grad_pitch_;
  d.b = window;
  d.b_image = w.plane();
  d.b_line = w.pitch();
  d.offsets = offsets.data();
  d.m = rows;
  d.n = planes * taps_;
  d.c = sums +
        ((split * s_.groups + group) * s_.out_channels * lanes_ + r0 * lanes_ + p0 * taps_) * item_;
  d.c_stride = lanes_;
  for (int64_t r = 0; r < rows; ++r)
    std::memset(static_cast<char*>(d.c) + r * lanes_ * item_, 0, static_cast<size_t>(d.n * item_));

  std::vector<uint16_t> masks;
  const int64_t begin = pieces_ * split / splits_, end = pieces_ * (split + 1) / splits_;
  for (int64_t piece = begin; piece < end; ++piece) {
    int64_t i = piece;
    const int64_t x0 = i % width_pieces_ * width_, width = std::min(width_, s_.output[2] - x0);
    i /= width_pieces_;
    const int64_t y0 = i % line_pieces_ * lines_, lines = std::min(lines_, s_.output[1] - y0);
    i /= line_pieces_;
    const int64_t z = i % s_.output[0];
    const int64_t n0 = i / s_.output[0] * images_, images = std::min(images_, s_.batch - n0);
    for (int64_t n = 0; n < images; ++n) {
      const char* grad = static_cast<const char*>(grad_.data) +
                         ((n0 + n) * grad_.outer + (group * s_.out_channels + r0) * grad_.channel +
                          z * grad_.space[0] + y0 * grad_.space[1] + x0 * grad_.space[2]) *
                             from_item_;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t l = 0; l < lines; ++l) {
          char* to = scratch + (r * d.a_stride + n * grad_image_ + l * grad_pitch_) * item_;
          k_.load(to, grad + (r * grad_.channel + l * grad_.space[1]) * from_item_, dtype_, width,
                  grad_.space[2]);
          if (!k_.has_masks)
            std::memset(to + width * item_, 0, static_cast<size_t>((grad_pitch_ - width) * item_));
        }
      const char* input =
          static_cast<const char*>(input_.data) +
          ((n0 + n) * input_.outer + group * s_.in_channels * input_.channel) * from_item_;
      for (int64_t p = 0; p < planes; ++p) {
        const int64_t channel = (p0 + p) / depth_;
        const int64_t from_z = z * axes_[0].step + axes_[0].taps[(p0 + p) % depth_];
        const bool inside = from_z >= 0 && from_z < s_.input[0];
        w.fill(k_, dtype_,
               inside ? input + (channel * input_.channel + from_z * input_.space[0]) * from_item_
                      : nullptr,
               input_.space[1], input_.space[2], y0, lines, x0, width,
               window + (p * images_ + n) * w.plane() * item_);
      }
    }
    d.cols = joins_lines_ ? (lines - 1) * grad_pitch_ + width : width;
    d.lines = joins_lines_ ? 1 : lines;
    d.images = images;
    if (k_.has_masks) {
      masks.assign(static_cast<size_t>(ceil_div(d.cols, k_.lanes)), 0);
      for (int64_t l = 0; l * grad_pitch_ < d.cols; ++l)
        for (int64_t x = l * grad_pitch_; x < l * grad_pitch_ + width; ++x)
          masks[static_cast<size_t>(x / k_.lanes)] |= static_cast<uint16_t>(1 << x % k_.lanes);
      d.masks = masks.data();
    }
    k_.dots(d);
  }
}

// Adds the splits of one row, each to the first, and writes it.
void WeightGrad::finish(int64_t group, int64_t row, const char* sums) const {
  const int64_t each = s_.groups * s_.out_channels * lanes_ * item_;
  const char* from = sums + (group * s_.out_channels + row) * lanes_ * item_;
  char* to = static_cast<char*>(target_.data) +
             (group * s_.out_channels + row) * target_.outer * from_item_;
  k_.add(const_cast<char*>(from), from + each, splits_ - 1, each / item_, lanes_);
  const int64_t line = s_.kernel[2];
  for (int64_t p = 0; p < planes_; ++p)
    for (int64_t y = 0; y < s_.kernel[1]; ++y) {
      k_.store(to + (p / depth_ * target_.channel + p % depth_ * target_.space[0] +
                     y * target_.space[1]) *
                        from_item_,
               dtype_, target_.space[2], from, line, nullptr);
      from += line * item_;
    }
}

void WeightGrad::run() {
  if (event::listening()) [[unlikely]]
    event::report({"conv", "dots", packed_level().name, s_.groups * s_.out_channels * lanes_});
  const int64_t rows = s_.groups * s_.out_channels;
  const Scratch sums(bytes_of(splits_ * rows * lanes_, k_.item));
  const size_t bytes = static_cast<size_t>(
      grad_bytes_ + (planes_of_block_ * images_ * window_.front().plane() + 64) * item_);
  const int64_t blocks = s_.groups * row_blocks_ * plane_blocks_ * splits_;
  const int64_t work = std::max<int64_t>(
      ceil_div(pieces_, splits_) * images_ * lines_ * width_ * rows_ * planes_of_block_ * taps_, 1);
  queue::parallel_for(0, blocks, ceil_div(1 << 18, work), [&](int64_t begin, int64_t end) {
    const Scratch scratch(bytes);
    for (int64_t i = begin; i < end; ++i) block(i, scratch.get<char>(), sums.get<char>());
  });
  queue::parallel_for(0, rows, ceil_div(1 << 16, splits_ * lanes_),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i)
                          finish(i / s_.out_channels, i % s_.out_channels, sums.get<char>());
                      });
}

}  // namespace

void conv_weight_grad(const ConvSizes& s, ScalarType dtype, const ConvArray& grad,
                      const ConvArray& input, const ConvArray& weight_grad) {
  if (s.groups <= 0 || s.out_channels <= 0 || s.in_channels <= 0) return;
  for (int i = 0; i < 3; ++i)
    if (s.kernel[i] <= 0) return;
  const bool empty = s.batch == 0 || s.output[0] == 0 || s.output[1] == 0 || s.output[2] == 0;
  if (!empty) WeightGrad(s, dtype, grad, input, weight_grad).run();
}

const ConvKernels& conv_kernels(ScalarType type) {
#if defined(__x86_64__)
  if (&packed_level() == &packed_avx512::kLevel)
    return packed_avx512::kConvLevel.kernels[packed_type(type)];
  if (&packed_level() == &packed_avx2::kLevel)
    return packed_avx2::kConvLevel.kernels[packed_type(type)];
#endif
  return packed_baseline::kConvLevel.kernels[packed_type(type)];
}

}  // namespace lamina::cpu
