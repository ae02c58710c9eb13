// Sums over taps as products of packed weights with rows of a window.
#include <algorithm>
#include <bit>
#include <cstring>

#include "lamina/cpu/conv_taps.h"
#include "lamina/cpu/scratch.h"
#include "lamina/event/event.h"
#include "lamina/queue/parallel.h"

namespace lamina::cpu {

namespace {

constexpr int64_t kPoints = 448;                       // of the output grid, about, in a block
constexpr int64_t kManyPoints = 2048, kFewSteps = 64;  // in a block, where a point is little work
constexpr int64_t kReadInPlace = 16;  // channels that are read where they lie: each is a page
constexpr int64_t kPieceSteps = 288;  // of k, about, whose rows are held at once
constexpr int64_t kBlockRows = 192;   // of the weights
constexpr int64_t kWantedBlocks = 16;
constexpr int64_t kChunkWork = 1 << 18;  // multiply-adds

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }
int64_t at(const std::array<int64_t, 3>& strides, int64_t z, int64_t y, int64_t x) {
  return z * strides[0] + y * strides[1] + x * strides[2];
}

// One tap, at the place itself.
bool is_plain(const TapAxis& axis) {
  return axis.step == 1 && axis.taps.size() == 1 && axis.taps[0] == 0 && axis.in == axis.out;
}

// How the work is cut, by sizes alone.
class Plan {
 public:
  explicit Plan(const TapSum& s);
  void run();

 private:
  void choose_block();
  void report() const;
  void pack(int64_t group, int64_t panel, char* out) const;
  void block(int64_t index, char* scratch) const;
  int64_t points(int64_t rows, int64_t width, int64_t pitch) const {
    return round_up((rows - 1) * pitch + width, k_.lanes);
  }

  const TapSum& s_;
  const ConvKernels& k_;
  int64_t item_, from_item_;
  int64_t taps_, planes_, steps_;  // of one plane; channels times depth taps; all of k
  int64_t piece_;                  // planes of one piece of k
  int64_t rows_padded_;
  int64_t block_rows_ = 0, block_lines_ = 1, block_width_ = 1;
  int64_t row_blocks_ = 0, line_blocks_ = 0, width_blocks_ = 0;
  const char* weights_ = nullptr;
  const char* bias_ = nullptr;
  int64_t window_bytes_ = 0;
  std::vector<int64_t> offsets_;
  std::vector<int64_t> place_offsets_;   // of a piece that is read in place
  std::vector<int64_t> weight_offsets_;  // of all steps of k
  std::vector<Window> window_;           // one
  bool weights_adjacent_, reads_in_place_, writes_in_place_;
};

Plan::Plan(const TapSum& s)
    : s_(s),
      k_(conv_kernels(s.dtype)),
      item_(static_cast<int64_t>(k_.item)),
      from_item_(static_cast<int64_t>(item_size(s.dtype))),
      taps_(static_cast<int64_t>(s.axes[1].taps.size() * s.axes[2].taps.size())),
      planes_(s.channels * static_cast<int64_t>(s.axes[0].taps.size())),
      steps_(planes_ * taps_),
      piece_(std::clamp<int64_t>(kPieceSteps / std::max<int64_t>(taps_, 1), 1,
                                 std::max<int64_t>(planes_, 1))),
      rows_padded_(round_up(s.rows, k_.mr)) {
  if (planes_ > piece_) piece_ = ceil_div(planes_, ceil_div(planes_, piece_));
  choose_block();
  const Window& w = window_.front();
  for (int64_t c = 0; c < piece_; ++c)
    for (const int64_t o : w.offsets()) offsets_.push_back(c * w.plane() + o);
  for (int64_t c = 0; c < s.channels; ++c)
    for (const int64_t z : s.axes[0].weights)
      for (const int64_t y : s.axes[1].weights)
        for (const int64_t x : s.axes[2].weights)
          weight_offsets_.push_back(c * s.weight_channel + z + y + x);
  weights_adjacent_ = true;
  for (size_t i = 0; i < weight_offsets_.size(); ++i)
    weights_adjacent_ = weights_adjacent_ && weight_offsets_[i] == static_cast<int64_t>(i);
  // What lies as the kernels read and write needs no copy.
  const bool whole = item_ == from_item_;
  reads_in_place_ = whole && planes_ <= kReadInPlace && is_plain(s.axes[1]) &&
                    is_plain(s.axes[2]) && s.axes[1].out == 1 && s.source.space[2] == 1 &&
                    s.axes[0].taps.size() == 1 && s.axes[0].taps[0] == 0;
  writes_in_place_ = whole && block_lines_ == 1 && s.target.space[2] == 1;
  if (reads_in_place_)
    for (int64_t c = 0; c < piece_; ++c) place_offsets_.push_back(c * s.source.channel);
  // Tiles read whole vectors behind the last point.
  window_bytes_ = round_up((piece_ * w.plane() + 64) * item_, 64);
}

void Plan::choose_block() {
  const TapAxis &y = s_.axes[1], &x = s_.axes[2];
  const int64_t wanted = s_.rows * steps_ <= kFewSteps ? kManyPoints : kPoints;
  if (x.out >= wanted) {
    block_width_ = round_up(ceil_div(x.out, ceil_div(x.out, wanted)), 2 * k_.lanes);
    block_lines_ = 1;
  } else {
    // As many whole lines as waste least at the ends of blocks.
    block_width_ = x.out;
    const int64_t pitch = Window(y, x, 1, x.out).pitch();
    const int64_t most = std::clamp<int64_t>(ceil_div(wanted, pitch), 1, y.out);
    double best = -1;
    for (int64_t lines = std::max<int64_t>(1, most / 2); lines <= most; ++lines) {
      const int64_t rest = y.out % lines;
      const int64_t computed =
          y.out / lines * points(lines, x.out, pitch) + (rest ? points(rest, x.out, pitch) : 0);
      const double share = static_cast<double>(y.out * x.out) / static_cast<double>(computed);
      if (share >= best + 0.002) best = share, block_lines_ = lines;
    }
  }
  line_blocks_ = ceil_div(y.out, block_lines_);
  width_blocks_ = ceil_div(x.out, block_width_);
  const int64_t grids = s_.batch * s_.groups * s_.axes[0].out * line_blocks_ * width_blocks_;
  row_blocks_ = ceil_div(s_.rows, kBlockRows);
  row_blocks_ = std::max(row_blocks_, std::min(ceil_div(kWantedBlocks, grids), s_.rows / 32));
  block_rows_ = round_up(ceil_div(s_.rows, row_blocks_), k_.mr);
  row_blocks_ = ceil_div(s_.rows, block_rows_);
  window_.emplace_back(y, x, block_lines_, block_width_);
}

// One panel of mr rows, for all pieces of k; pieces follow one another, each with all panels.
void Plan::pack(int64_t group, int64_t panel, char* out) const {
  const int64_t row0 = panel * k_.mr, rows = std::min<int64_t>(k_.mr, s_.rows - row0);
  const char* from = static_cast<const char*>(s_.weight) +
                     (group * s_.weight_group + row0 * s_.weight_row) * from_item_;
  for (int64_t first = 0; first < planes_; first += piece_) {
    const int64_t k = std::min(piece_, planes_ - first) * taps_;
    char* to =
        out +
        (group * rows_padded_ * steps_ + first * taps_ * rows_padded_ + panel * k_.mr * k) * item_;
    if (weights_adjacent_ && s_.weight_row != 1)
      packed_level().kernels[packed_type(s_.dtype)].pack(
          to, from + first * taps_ * from_item_, s_.dtype, rows, k, s_.weight_row, 1, k_.mr);
    else
      k_.pack(to, from, s_.dtype, rows, s_.weight_row, weight_offsets_.data() + first * taps_, k);
  }
}

void Plan::block(int64_t index, char* scratch) const {
  const int64_t xb = index % width_blocks_;
  index /= width_blocks_;
  const int64_t yb = index % line_blocks_;
  index /= line_blocks_;
  const int64_t rb = index % row_blocks_;
  index /= row_blocks_;
  const int64_t z = index % s_.axes[0].out;
  index /= s_.axes[0].out;
  const int64_t group = index % s_.groups, n = index / s_.groups;

  const Window& w = window_.front();
  const int64_t x0 = xb * block_width_, width = std::min(block_width_, s_.axes[2].out - x0);
  const int64_t y0 = yb * block_lines_, lines = std::min(block_lines_, s_.axes[1].out - y0);
  const int64_t r0 = rb * block_rows_, rows = std::min(block_rows_, s_.rows - r0);
  const auto depth = static_cast<int64_t>(s_.axes[0].taps.size());
  // The source ends where it ends: whole vectors are read there only.
  const bool in_place = reads_in_place_ && width % k_.lanes == 0;
  char* sums = scratch + window_bytes_;
  ConvProduct p;
  p.b = scratch;
  p.offsets = in_place ? place_offsets_.data() : offsets_.data();
  p.c = sums;
  p.cols = points(lines, width, w.pitch());
  p.c_stride = p.cols;
  p.rows = rows;
  char* target = static_cast<char*>(s_.target.data) +
                 (n * s_.target.outer + (group * s_.rows + r0) * s_.target.channel +
                  at(s_.target.space, z, y0, x0)) *
                     from_item_;
  const bool straight = writes_in_place_ && !bias_ && (k_.has_masks || width % k_.lanes == 0);
  if (straight) {
    p.c = target;
    p.c_stride = s_.target.channel;
    p.cols = width;
  }
  const char* source = static_cast<const char*>(s_.source.data) +
                       (n * s_.source.outer + group * s_.channels * s_.source.channel) * from_item_;
  if (steps_ == 0) std::memset(sums, 0, static_cast<size_t>(rows * p.cols * item_));
  for (int64_t first = 0; steps_ > 0 && first < planes_; first += piece_) {
    const int64_t count = std::min(piece_, planes_ - first);
    if (in_place) p.b = source + (first * s_.source.channel + z * s_.source.space[0] + x0) * item_;
    for (int64_t c = 0; !in_place && c < count; ++c) {
      const int64_t channel = (first + c) / depth;
      const int64_t from_z = z * s_.axes[0].step + s_.axes[0].taps[(first + c) % depth];
      const bool inside = from_z >= 0 && from_z < s_.axes[0].in;
      w.fill(k_, s_.dtype,
             inside
                 ? source + (channel * s_.source.channel + from_z * s_.source.space[0]) * from_item_
                 : nullptr,
             s_.source.space[1], s_.source.space[2], y0, lines, x0, width,
             scratch + c * w.plane() * item_);
    }
    p.a =
        weights_ +
        (group * rows_padded_ * steps_ + first * taps_ * rows_padded_ + r0 * count * taps_) * item_;
    p.k = count * taps_;
    p.accumulate = first > 0;
    k_.multiply(p);
  }
  if (straight && steps_ > 0) return;
  if (item_ == from_item_ && s_.target.space[2] == 1 && !bias_) {
    for (int64_t r = 0; r < rows; ++r)
      k_.copy(target + r * s_.target.channel * item_, s_.target.space[1], sums + r * p.cols * item_,
              w.pitch(), width, lines);
    return;
  }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t l = 0; l < lines; ++l)
      k_.store(target + (r * s_.target.channel + l * s_.target.space[1]) * from_item_, s_.dtype,
               s_.target.space[2], sums + (r * p.cols + l * w.pitch()) * item_, width,
               bias_ ? bias_ + (group * s_.rows + r0 + r) * item_ : nullptr);
}

// How the source is read and the target written, and why not in a cheaper way.
void Plan::report() const {
  const char* name = reads_in_place_ ? "pointwise" : "window";
  if (!reads_in_place_)
    event::t_listener->on_refusal(
        "pointwise", "not one tap at the place itself, on few channels of rows without gaps");
  event::report(
      {"conv", name, packed_level().name,
       s_.batch * s_.groups * s_.rows * s_.axes[0].out * s_.axes[1].out * s_.axes[2].out});
}

void Plan::run() {
  if (event::listening()) [[unlikely]]
    report();
  const int64_t panels = rows_padded_ / k_.mr;
  const Scratch packed(bytes_of(s_.groups * rows_padded_ * steps_, k_.item));
  const Scratch bias(s_.bias.data ? bytes_of(s_.groups * s_.rows, k_.item) : 0);
  weights_ = packed.get<char>();
  if (s_.bias.data) {
    k_.load(bias.get(), s_.bias.data, s_.dtype, s_.groups * s_.rows, s_.bias.stride);
    bias_ = bias.get<char>();
  }
  queue::parallel_for(0, steps_ ? s_.groups * panels : 0, ceil_div(1 << 16, k_.mr * steps_ + 1),
                      [&](int64_t begin, int64_t end) {
                        for (int64_t i = begin; i < end; ++i)
                          pack(i / panels, i % panels, packed.get<char>());
                      });
  const int64_t blocks =
      s_.batch * s_.groups * s_.axes[0].out * row_blocks_ * line_blocks_ * width_blocks_;
  const int64_t sums = points(block_lines_, block_width_, window_.front().pitch()) * block_rows_;
  const size_t bytes = static_cast<size_t>(window_bytes_ + (sums + 64) * item_);
  const int64_t work = std::max<int64_t>(sums * steps_, 1);
  queue::parallel_for(0, blocks, ceil_div(kChunkWork, work), [&](int64_t begin, int64_t end) {
    const Scratch scratch(bytes);
    std::memset(scratch.get<char>() + window_bytes_ - 64 * item_, 0,
                static_cast<size_t>(64 * item_));
    for (int64_t i = begin; i < end; ++i) block(i, scratch.get<char>());
  });
}

}  // namespace

void run_tap_sum(TapSum sum) {
  if (sum.batch <= 0 || sum.groups <= 0 || sum.rows <= 0) return;
  for (const TapAxis& axis : sum.axes)
    if (axis.out <= 0) return;
  // Without neighbours an image is one long line.
  for (size_t outer : {1, 0}) {
    TapAxis &a = sum.axes[outer], &b = sum.axes[2];
    if (!is_plain(a) || !is_plain(b) || (outer == 0 && sum.axes[1].out != 1)) continue;
    if (sum.source.space[outer] != b.out * sum.source.space[2] && a.out != 1) continue;
    if (sum.target.space[outer] != b.out * sum.target.space[2] && a.out != 1) continue;
    b.out = b.in = a.out * b.out;
    b.weights[0] += a.weights[0];
    a.out = a.in = 1;
    a.weights[0] = 0;
  }
  Plan(sum).run();
}

}  // namespace lamina::cpu
