// Reductions by fixed trees over fixed chunks.
#include "lamina/tile/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "lamina/core/error.h"
#include "lamina/core/float_types.h"
#include "lamina/event/event.h"
#include "lamina/queue/parallel.h"
#include "lamina/tile/plan.h"

namespace lamina::tile {

Reduction::Reduction(const ReduceCall& c) : call(c), level(tile::level()) {
  choose_mode();
  slot = memory_slot(type);
  item = static_cast<int64_t>(item_size(type));
  in_item = static_cast<int64_t>(item_size(call.input.dtype));
  collect_dims();
}

void Reduction::choose_mode() {
  type = compute_type(call.accumulate);
  const ScalarType sum_type = is_integral(type, true) ? ScalarType::Int64 : type;
  switch (call.kind) {
    case Reduce::sum:
    case Reduce::nansum:
    case Reduce::mean:
    case Reduce::count_nonzero:
      type = call.kind == Reduce::count_nonzero ? ScalarType::Int64 : sum_type;
      break;
    case Reduce::prod:
      type = sum_type;
      fold = merge_fold = Fold::prod;
      break;
    case Reduce::norm2:
      fold = Fold::sum_squares;
      break;
    case Reduce::any:
    case Reduce::all:
      type = ScalarType::Bool;
      fold = merge_fold = call.kind == Reduce::any ? Fold::any : Fold::all;
      break;
    case Reduce::amax:
    case Reduce::argmax:
    case Reduce::max_index:
      fold = merge_fold = Fold::amax;
      break;
    case Reduce::amin:
    case Reduce::argmin:
    case Reduce::min_index:
      fold = merge_fold = Fold::amin;
      break;
    case Reduce::var:
    case Reduce::std_dev:
      mode = Mode::Moments;
      break;
    case Reduce::logsumexp:
      mode = Mode::LogSumExp;
      break;
  }
  if (call.kind == Reduce::argmax || call.kind == Reduce::argmin ||
      call.kind == Reduce::max_index || call.kind == Reduce::min_index)
    mode = Mode::Find;
  const int s = memory_slot(type);
  bool ok = false;
  switch (mode) {
    case Mode::Fold:
      ok = level.fold_leaf[static_cast<int>(fold)][s] != nullptr;
      break;
    case Mode::Find:
      ok = level.find[0][s] != nullptr;
      break;
    default:
      ok = is_floating(type);
      break;
  }
  LAMINA_INTERNAL_CHECK(ok, "reduction ", static_cast<int>(call.kind), " has no loop for ", type);
}

// The other sizes and strides of an empty tensor may be anything: their products wrap, and nothing
// uses them.
static int64_t wrapping(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

void Reduction::collect_dims() {
  const auto add = [&](Dims& dims, int d) {
    const int n = dims.n++;
    dims.size[n] = call.sizes[d];
    dims.in[n] = wrapping(call.input.strides[d], in_item);
    const bool keeps = &dims == &kept;
    dims.out[n] = keeps ? wrapping(call.out.strides[d], int64_t(item_size(call.out.dtype))) : 0;
    dims.index[n] = keeps && call.out_index.data
                        ? call.out_index.strides[d] * int64_t(item_size(call.out_index.dtype))
                        : 0;
  };
  for (int d = call.ndim - 1; d >= 0; --d) {
    Dims& dims = call.reduced[d] ? reduced : kept;
    dims.count = wrapping(dims.count, call.sizes[d]);
    if (call.sizes[d] != 1) add(dims, d);
  }
  const auto magnitude = [](int64_t v) { return v < 0 ? -v : v; };
  const auto sort = [&](Dims& dims) {
    for (int i = 1; i < dims.n; ++i)
      for (int j = i; j > 0 && magnitude(dims.in[j]) < magnitude(dims.in[j - 1]); --j) {
        std::swap(dims.size[j], dims.size[j - 1]);
        std::swap(dims.in[j], dims.in[j - 1]);
        std::swap(dims.out[j], dims.out[j - 1]);
        std::swap(dims.index[j], dims.index[j - 1]);
      }
  };
  const auto coalesce = [](Dims& dims) {
    int last = 0;
    for (int d = 1; d < dims.n; ++d) {
      const int64_t s = dims.size[last];
      if (dims.in[d] == wrapping(s, dims.in[last]) && dims.out[d] == wrapping(s, dims.out[last]) &&
          dims.index[d] == wrapping(s, dims.index[last])) {
        dims.size[last] = wrapping(s, dims.size[d]);
      } else if (++last != d) {
        dims.size[last] = dims.size[d];
        dims.in[last] = dims.in[d];
        dims.out[last] = dims.out[d];
        dims.index[last] = dims.index[d];
      }
    }
    if (dims.n) dims.n = last + 1;
  };
  sort(kept);
  if (mode != Mode::Find) sort(reduced);  // a position counts in the caller's order
  coalesce(kept);
  coalesce(reduced);
  for (Dims* dims : {&kept, &reduced})
    if (dims->n == 0) {
      dims->n = 1;
      dims->size[0] = 1;
      dims->in[0] = dims->out[0] = dims->index[0] = 0;
    }
}

Reduction::Place Reduction::place(int64_t k) const {
  Place p{static_cast<char*>(call.input.data), static_cast<char*>(call.out.data),
          static_cast<char*>(call.out_index.data)};
  for (int d = 0; d < kept.n; ++d) {
    const int64_t i = k % kept.size[d];
    k /= kept.size[d];
    p.in += i * kept.in[d];
    p.out += i * kept.out[d];
    if (p.index) p.index += i * kept.index[d];
  }
  return p;
}

void Reduction::run() {
  if (kept.count == 0) return;
  if (reduced.count == 0) return run_empty();
  // Folding whole rows into a row suits inputs whose fast dimension is kept, and short reductions.
  const bool fast_kept = kept.size[0] >= 8 && kept.in[0] == in_item;
  const bool short_rows = reduced.n == 1 && reduced.count <= 32 && kept.size[0] >= 64;
  const char* no_fold =
      mode == Mode::Fold ? nullptr : "what is kept of a part is more than one number";
  const char* not_across = no_fold ? no_fold
                           : !fast_kept && !short_rows
                               ? "the elements that are kept are few or not adjacent"
                               : nullptr;
  const char* not_rows = no_fold ? no_fold
                         : !adjacent_rows()
                             ? "the elements of a row are not adjacent, or are converted"
                         : reduced.count > kReduceChunk ? "rows are longer than a chunk"
                                                        : nullptr;
  if (event::listening()) [[unlikely]] {
    if (not_across) event::t_listener->on_refusal("rows into a row", not_across);
    if (not_across && not_rows) event::t_listener->on_refusal("row by row", not_rows);
    event::report({"tile reduction",
                   !not_across ? "rows into a row"
                   : !not_rows ? "row by row"
                               : "tree of leaves",
                   isa_name().data(), kept.count * reduced.count});
  }
  if (!not_across) return run_across();
  if (!not_rows) return run_rows();
  run_groups();
}

void Reduction::run_empty() {
  Partial part{};
  switch (call.kind) {
    case Reduce::amax:
    case Reduce::amin:
    case Reduce::argmax:
    case Reduce::argmin:
    case Reduce::max_index:
    case Reduce::min_index:
      raise(ErrorKind::Index,
            "reduction: no element to choose from; expected reduced dimensions of non-zero size");
    case Reduce::prod:
    case Reduce::all:
      store_scalar(part.value, type, Scalar(1));
      break;
    case Reduce::logsumexp:
      part.mean = -std::numeric_limits<double>::infinity();
      break;
    default:
      break;
  }
  for (int64_t k = 0; k < kept.count; ++k) finish(part, place(k));
}

namespace {
constexpr Instr kNanToZeroCode[] = {{Op::isnan, 2, 0, 0, 0}, {Op::where, 3, 2, 1, 0}};
constexpr RegClass kNanToZeroClasses[] = {RegClass::C, RegClass::C, RegClass::B, RegClass::C};
constexpr uint8_t kNanToZeroOutputs[] = {3};
constexpr Scalar kZeroConstant[] = {Scalar(0)};
constexpr Program kNanToZero{.code = kNanToZeroCode,
                             .classes = kNanToZeroClasses,
                             .outputs = kNanToZeroOutputs,
                             .constants = kZeroConstant,
                             .num_instr = 2,
                             .num_inputs = 1,
                             .num_scalars = 0,
                             .num_constants = 1,
                             .num_outputs = 1,
                             .num_registers = 4};
}  // namespace

void Reduction::map_block(char* data, int64_t n) const {
  const Program* program = call.kind == Reduce::nansum ? &kNanToZero : call.map;
  if (!program) return;
  constexpr int64_t kOne[] = {1};
  const Operand operand{data, type, kOne};
  tile::run({.program = program,
             .compute = type,
             .ndim = 1,
             .sizes = &n,
             .outs = &operand,
             .ins = &operand,
             .scalars = call.scalars});
}

void Reduction::finish_load(char* to, const char* raw, int64_t n) const {
  const int from = memory_slot(call.input.dtype);
  if (call.kind == Reduce::count_nonzero) {
    unsigned char flags[kLeaf];
    for (int64_t i = 0; i < n; i += kLeaf) {
      const int64_t count = std::min(kLeaf, n - i);
      convert_block(level, flags, 0, raw + i * in_item, from, count);
      convert_block(level, to + i * item, slot, flags, 0, count);
    }
  } else if (to != raw) {
    convert_block(level, to, slot, raw, from, n);
  }
  map_block(to, n);
}

// ---- per output
// ---------------------------------------------------------------------------------------------------

const char* Reduction::load_leaf(const char* in, int64_t begin, int64_t n, int64_t group, char* raw,
                                 char* to, int64_t& row_stride) const {
  Walk walk(reduced, in, begin);
  if (plain() && group == 1 && reduced.in[0] == in_item && n <= walk.left()) return walk.in;
  char* gathered = plain() ? to : raw;
  const MoveLoop move = level.move[size_index(in_item)];
  for (int64_t done = 0;;) {
    const int64_t run = std::min(n - done, walk.left());
    move(gathered + done * in_item, n * in_item, in_item, walk.in, kept.in[0], reduced.in[0], group,
         run);
    done += run;
    if (done == n) break;
    walk.next_run();
  }
  if (gathered != to) finish_load(to, raw, group * n);
  row_stride = n * item;
  return to;
}

void Reduction::leaf(Partial& part, const char* x, int64_t begin, int64_t n) const {
  switch (mode) {
    case Mode::Fold:
      level.fold_leaf[static_cast<int>(fold)][slot](part.value, x, n);
      break;
    case Mode::Find:
      level.find[fold == Fold::amax ? 0 : 1][slot](&part.index, x, n);
      std::memcpy(part.value, x + part.index * item, static_cast<size_t>(item));
      part.index += begin;
      break;
    case Mode::Moments:
      level.rows[slot].moments(&part.mean, &part.m2, x, n);
      part.count = static_cast<double>(n);
      break;
    case Mode::LogSumExp: {
      level.fold_leaf[static_cast<int>(Fold::amax)][slot](part.value, x, n);
      part.mean = load_scalar(part.value, type).to_double();
      part.m2 = part.mean > 0 ? 1 : 0;
      if (!std::isfinite(part.mean)) break;
      alignas(64) char shifted[kLeaf * 8];
      direct_with_single(Op::sub, type, 2, shifted, x, part.value, n);
      direct_loop(Op::exp, type)(shifted, shifted, nullptr, nullptr, n);
      level.fold_leaf[static_cast<int>(Fold::sum)][slot](part.value, shifted, n);
      part.m2 = load_scalar(part.value, type).to_double();
      break;
    }
  }
}

void Reduction::merge(Partial& a, const Partial& b) const {
  switch (mode) {
    case Mode::Fold:
    case Mode::Find: {
      alignas(16) unsigned char pair[32];
      std::memcpy(pair, a.value, static_cast<size_t>(item));
      std::memcpy(pair + item, b.value, static_cast<size_t>(item));
      if (mode == Mode::Fold) {
        level.fold_across[static_cast<int>(merge_fold)][slot](a.value, pair, 1, 2, 1);
      } else {
        int64_t which = 0;
        level.find[fold == Fold::amax ? 0 : 1][slot](&which, pair, 2);
        if (which == 1) a = b;
      }
      break;
    }
    case Mode::Moments: {
      // Chan's formula for joining two sets of moments.
      const double n = a.count + b.count;
      const double d = b.mean - a.mean;
      a.mean += d * (b.count / n);
      a.m2 += b.m2 + d * d * (a.count * b.count / n);
      a.count = n;
      break;
    }
    case Mode::LogSumExp: {
      if (std::isnan(a.mean) || b.mean == -std::numeric_limits<double>::infinity()) break;
      if (std::isnan(b.mean) || a.mean == -std::numeric_limits<double>::infinity()) {
        a = b;
        break;
      }
      const double top = std::max(a.mean, b.mean);
      if (std::isfinite(top)) a.m2 = a.m2 * std::exp(a.mean - top) + b.m2 * std::exp(b.mean - top);
      a.mean = top;
      break;
    }
  }
}

// The tree of tree() without the walk: all leaves in one call, then pairs of pairs.
void Reduction::fold_adjacent(char* value, const char* x, int64_t n) const {
  const FoldLeaf fold_leaf = level.fold_leaf[static_cast<int>(fold)][slot];
  if (n <= kLeaf) return fold_leaf(value, x, n);
  alignas(64) char values[kReduceChunk / kLeaf * 16];
  fold_leaf(values, x, n);
  const FoldAcross across = level.fold_across[static_cast<int>(merge_fold)][slot];
  const int64_t leaves = (n + kLeaf - 1) / kLeaf;
  for (int64_t width = 1; width < leaves; width *= 2)
    for (int64_t i = 0; i + width < leaves; i += 2 * width)
      across(values + i * item, values + i * item, width, 2, 1);
  if (item == 4)  // a copy of any size would be a call
    std::memcpy(value, values, 4);
  else
    std::memcpy(value, values, static_cast<size_t>(item));
}

void Reduction::run_rows() {
  constexpr int64_t kBatch = 64;
  const int64_t n = reduced.count;
  const int64_t batch = std::clamp<int64_t>(kParallelGrain / n, 1, kBatch);
  const int64_t per_row = (kept.size[0] + batch - 1) / batch;
  const int64_t work = batch * n;
  queue::parallel_for(0, kept.count / kept.size[0] * per_row,
                      std::max<int64_t>(1, kParallelGrain / work), [&](int64_t b, int64_t e) {
                        alignas(64) char values[kBatch * 16];
                        for (int64_t task = b; task < e; ++task) {
                          const int64_t start = task % per_row * batch;
                          const int64_t first = task / per_row * kept.size[0] + start;
                          const int64_t count = std::min(batch, kept.size[0] - start);
                          const char* x = place(first).in;
                          for (int64_t i = 0; i < count; ++i)
                            fold_adjacent(values + i * item, x + i * kept.in[0], n);
                          write(values, first, count);
                        }
                      });
}

void Reduction::write(const char* values, int64_t first, int64_t count) const {
  Place p = place(first);
  if (kept.out[0] == int64_t(item_size(call.out.dtype)) && call.kind != Reduce::mean &&
      call.kind != Reduce::norm2)
    return convert(p.out, call.out.dtype, values, type, count);
  Partial part{};
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(part.value, values + i * item, static_cast<size_t>(item));
    finish(part, p);
    p.out += kept.out[0];
  }
}

void Reduction::tree(Partial* parts, const char* in, int64_t begin, int64_t n, int64_t group,
                     char* raw, char* to) const {
  if (n <= kLeaf) {
    int64_t row_stride = 0;
    const char* x = load_leaf(in, begin, n, group, raw, to, row_stride);
    for (int64_t g = 0; g < group; ++g) leaf(parts[g], x + g * row_stride, begin, n);
    return;
  }
  if (group == 1 && adjacent_rows())
    return fold_adjacent(reinterpret_cast<char*>(parts[0].value), in + begin * in_item, n);
  const int64_t half = split_point(n, kLeaf);
  tree(parts, in, begin, half, group, raw, to);
  Partial second[kMaxGroup];
  tree(second, in, begin + half, n - half, group, raw, to);
  for (int64_t g = 0; g < group; ++g) merge(parts[g], second[g]);
}

void Reduction::finish(const Partial& part, const Place& p) const {
  switch (mode) {
    case Mode::Fold: {
      alignas(16) unsigned char value[16];
      std::memcpy(value, part.value, 16);
      const auto n = static_cast<double>(reduced.count);
      if (call.kind == Reduce::mean || call.kind == Reduce::norm2) {
        const Scalar v = load_scalar(value, type);
        if (call.kind == Reduce::norm2)
          store_scalar(value, type, Scalar(std::sqrt(v.to_double())));
        else if (type == ScalarType::Float32)
          store_scalar(value, type,
                       Scalar(static_cast<float>(v.to_double()) / static_cast<float>(n)));
        else if (is_complex(type))
          store_scalar(value, type, Scalar(v.to_complex() / n));
        else
          store_scalar(value, type, Scalar(v.to_double() / n));
      }
      convert(p.out, call.out.dtype, value, type, 1);
      break;
    }
    case Mode::Find:
      if (call.kind == Reduce::argmax || call.kind == Reduce::argmin) {
        convert(p.out, call.out.dtype, &part.index, ScalarType::Int64, 1);
      } else {
        convert(p.out, call.out.dtype, part.value, type, 1);
        if (p.index) convert(p.index, call.out_index.dtype, &part.index, ScalarType::Int64, 1);
      }
      break;
    case Mode::Moments: {
      const double divisor = std::max(0.0, static_cast<double>(reduced.count) - call.correction);
      double v = part.m2 / divisor;
      if (call.kind == Reduce::std_dev) v = std::sqrt(v);
      store_scalar(p.out, call.out.dtype, Scalar(v));
      if (p.index)
        store_scalar(p.index, call.out_index.dtype,
                     Scalar(reduced.count ? part.mean : std::numeric_limits<double>::quiet_NaN()));
      break;
    }
    case Mode::LogSumExp:
      store_scalar(p.out, call.out.dtype,
                   Scalar(std::isfinite(part.mean) ? part.mean + std::log(part.m2) : part.mean));
      break;
  }
}

void Reduction::run_groups() {
  const bool adjacent = reduced.in[0] == in_item;
  const bool gathers = !adjacent && kept.in[0] == in_item && kept.size[0] > 1;
  const int64_t widest = std::max(item, in_item);
  const int64_t group = gathers ? (widest > 8 ? 4 : widest > 4 ? 8 : kMaxGroup) : 1;
  const int64_t per_row = (kept.size[0] + group - 1) / group;
  const int64_t groups = kept.count / kept.size[0] * per_row;
  const int64_t chunks = (reduced.count + kReduceChunk - 1) / kReduceChunk;
  std::vector<Partial> partials;
  if (chunks > 1) partials.resize(static_cast<size_t>(kept.count * chunks));
  const int64_t work = group * std::min(reduced.count, kReduceChunk);
  queue::parallel_for(
      0, groups * chunks, std::max<int64_t>(1, kParallelGrain / work), [&](int64_t b, int64_t e) {
        alignas(64) char raw[kMaxGroup * kLeaf * 4];
        alignas(64) char to[kMaxGroup * kLeaf * 4];
        for (int64_t task = b; task < e; ++task) {
          const int64_t chunk = task % chunks;
          const int64_t g = task / chunks;
          const int64_t first = g / per_row * kept.size[0] + g % per_row * group;
          const int64_t count = std::min(group, kept.size[0] - g % per_row * group);
          Partial parts[kMaxGroup];
          const int64_t begin = chunk * kReduceChunk;
          tree(parts, place(first).in, begin, std::min(kReduceChunk, reduced.count - begin), count,
               raw, to);
          for (int64_t i = 0; i < count; ++i) {
            if (chunks > 1)
              partials[static_cast<size_t>((first + i) * chunks + chunk)] = parts[i];
            else
              finish(parts[i], place(first + i));
          }
        }
      });
  if (chunks == 1) return;
  // The upper part of the same tree.
  const auto join = [&](auto&& self, Partial* p, int64_t n) -> Partial& {
    if (n == 1) return p[0];
    const int64_t half = split_point(n, 1);
    Partial& first = self(self, p, half);
    merge(first, self(self, p + half, n - half));
    return first;
  };
  for (int64_t k = 0; k < kept.count; ++k)
    finish(join(join, &partials[static_cast<size_t>(k * chunks)], chunks), place(k));
}

void reduce(const ReduceCall& call) { Reduction(call).run(); }

}  // namespace lamina::tile
