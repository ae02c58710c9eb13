// Copies, conversions and fills.
#include <algorithm>
#include <cstring>

#include "lamina/core/error.h"
#include "lamina/core/float_types.h"
#include "lamina/event/event.h"
#include "lamina/queue/parallel.h"
#include "lamina/tile/adam.h"
#include "lamina/tile/plan.h"

namespace lamina::tile {

void convert_block(const Level& l, void* out, int to, const void* in, int from, int64_t n) {
  if (const ConvertLoop loop = l.convert[to][from]) return loop(out, in, n);
  constexpr size_t kSlotSize[kNumSlots] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 16, 2, 2, 1, 1};
  if (to == from) {
    std::memmove(out, in, static_cast<size_t>(n) * kSlotSize[to]);
    return;
  }
  constexpr int64_t kStep = 512;
  alignas(64) float middle[kStep];
  for (int64_t i = 0; i < n; i += kStep) {
    const int64_t count = std::min(kStep, n - i);
    convert_block(l, middle, kFloatSlot,
                  static_cast<const char*>(in) + i * int64_t(kSlotSize[from]), from, count);
    convert_block(l, static_cast<char*>(out) + i * int64_t(kSlotSize[to]), to, middle, kFloatSlot,
                  count);
  }
}

void convert(void* out, ScalarType out_type, const void* in, ScalarType in_type, int64_t n) {
  if (n <= 0) return;
  if (out_type == in_type)
    std::memmove(out, in, static_cast<size_t>(n) * item_size(in_type));
  else
    convert_block(level(), out, memory_slot(out_type), in, memory_slot(in_type), n);
}

void copy(const Operand& out, const Operand& in, int ndim, const int64_t* sizes) {
  Plan plan;
  plan.build(ndim, sizes, {&out, 1}, {&in, 1});
  if (plan.numel == 0) return;
  if (event::listening()) [[unlikely]]
    event::report(
        {"tile copy", out.dtype == in.dtype ? "move" : "convert", isa_name().data(), plan.numel});
  const Level& l = level();
  const int to = memory_slot(out.dtype);
  const int from = memory_slot(in.dtype);
  const bool same = out.dtype == in.dtype;
  const bool flat =
      plan.ndim == 1 && plan.stride[0][0] == plan.item[0] && plan.stride[0][1] == plan.item[1];
  const bool stream =
      streams(plan.bytes(0), plan.bytes(1), flat && same ? kStreamBlocks : l.streams_from) &&
      plan.stride[0][0] == plan.item[0] && !overlap(plan, 0, 1);
  if (flat) {
    if (same && plan.base[0] == plan.base[1]) return;
    const auto piece = [&](int64_t b, int64_t e) {
      char* o = plan.base[0] + b * plan.item[0];
      const char* x = plan.base[1] + b * plan.item[1];
      if (stream) {
        alignas(64) char block[kBlock * 16];
        for (int64_t i = 0; i < e - b; i += kBlock) {
          const int64_t n = std::min(kBlock, e - b - i);
          const char* source = x + i * plan.item[1];
          if (!same) {
            convert_block(l, block, to, source, from, n);
            source = block;
          }
          l.stream(o + i * plan.item[0], source, n * plan.item[0]);
        }
        l.stream(nullptr, nullptr, 0);
      } else if (same)
        std::memcpy(o, x, static_cast<size_t>((e - b) * plan.item[0]));
      else
        convert_block(l, o, to, x, from, e - b);
    };
    queue::parallel_for(0, plan.numel, kParallelGrain, piece);
    return;
  }
  plan.cut(kBlock);
  const bool out_adjacent = plan.adjacent(0);
  const bool in_adjacent = plan.adjacent(1);
  const auto work = [&](int64_t begin, int64_t end) {
    alignas(64) char gathered[kBlock * 16];
    alignas(64) char converted[kBlock * 16];
    BlockWalk walk(plan, begin);
    for (int64_t i = begin; i < end; ++i, walk.next()) {
      const int64_t rows = walk.rows();
      const int64_t cols = walk.cols();
      if (same && !stream) {
        l.move[size_index(plan.item[0])](walk.at(0), plan.stride1(0), plan.stride[0][0], walk.at(1),
                                         plan.stride1(1), plan.stride[0][1], rows, cols);
        continue;
      }
      const char* source = walk.at(1);
      if (!in_adjacent) {
        l.move[size_index(plan.item[1])](gathered, cols * plan.item[1], plan.item[1], source,
                                         plan.stride1(1), plan.stride[0][1], rows, cols);
        source = gathered;
      }
      const bool direct = out_adjacent && !stream;
      const char* result = source;
      if (!same) {
        convert_block(l, direct ? walk.at(0) : converted, to, source, from, rows * cols);
        result = converted;
      }
      if (stream)
        for (int64_t r = 0; r < rows; ++r)
          l.stream(walk.at(0) + r * plan.stride1(0), result + r * cols * plan.item[0],
                   cols * plan.item[0]);
      else if (!direct)
        l.move[size_index(plan.item[0])](walk.at(0), plan.stride1(0), plan.stride[0][0], result,
                                         cols * plan.item[0], plan.item[0], rows, cols);
    }
    if (stream) l.stream(nullptr, nullptr, 0);
  };
  const int64_t grain = std::max<int64_t>(1, kParallelGrain / (plan.rows * plan.cols));
  queue::parallel_for(0, plan.num_blocks, grain, work);
}

bool StreamedCopy::pays(int64_t out_bytes, int64_t in_bytes) {
  // Each thread brings caches of its own.
  return streams(out_bytes, in_bytes, kStreamDirect * queue::get_num_threads());
}
void StreamedCopy::piece(void* out, const void* in, int64_t bytes) {
  if (bytes > 0) level().stream(out, in, bytes);
}
void StreamedCopy::end() { level().stream(nullptr, nullptr, 0); }

void store_scalar(void* out, ScalarType type, const Scalar& value) {
  visit(type, [&]<class T>(TypeTag<T>) {
    T v;
    switch (value.kind()) {
      case Scalar::Kind::Bool:
        v = convert_to<T>(value.to_bool());
        break;
      case Scalar::Kind::Int:
        v = convert_to<T>(value.to_int());
        break;
      case Scalar::Kind::UInt:
        v = convert_to<T>(static_cast<uint64_t>(value.to_int()));
        break;
      case Scalar::Kind::Float:
        v = convert_to<T>(value.to_double());
        break;
      default:
        v = convert_to<T>(value.to_complex());
        break;
    }
    std::memcpy(out, &v, sizeof v);
  });
}

Scalar load_scalar(const void* in, ScalarType type) {
  return visit(type, [&]<class T>(TypeTag<T>) -> Scalar {
    if constexpr (std::is_same_v<T, bool>) {
      return Scalar(*static_cast<const unsigned char*>(in) != 0);
    } else {
      T v;
      std::memcpy(&v, in, sizeof v);
      if constexpr (is_complex_type<T>)
        return Scalar(std::complex<double>(v));
      else if constexpr (is_small_float_type<T>)
        return Scalar(static_cast<double>(static_cast<float>(v)));
      else
        return Scalar(v);
    }
  });
}

void fill(const Operand& out, int ndim, const int64_t* sizes, const Scalar& value) {
  alignas(16) char item[16];
  store_scalar(item, out.dtype, value);
  constexpr int64_t kZeros[kMaxDims] = {};
  copy(out, Operand{item, out.dtype, kZeros}, ndim, sizes);
}

void direct_with_single(Op op, ScalarType compute, int single, void* out, const void* a,
                        const void* b, int64_t n) {
  const DirectLoop loop = direct_loop(op, compute);
  LAMINA_INTERNAL_CHECK(loop != nullptr, op_info(op).name, " has no loop for ", compute);
  if (n <= 1) {
    if (n == 1) loop(out, a, b, nullptr, 1);
    return;
  }
  const auto class_size = [&](RegClass c) {
    return static_cast<int64_t>(c == RegClass::B   ? 1
                                : c == RegClass::R ? item_size(to_real(compute))
                                                   : item_size(compute));
  };
  const OpInfo& info = op_info(op);
  const int64_t size[2] = {class_size(info.in[0]), class_size(info.in[1])};
  const int64_t out_size = class_size(info.out);
  alignas(64) char repeated[2][kBlock * 16];
  const char* source[2] = {static_cast<const char*>(a), static_cast<const char*>(b)};
  const int64_t block = std::min(n, kBlock);
  for (int i = 0; i < 2; ++i)
    if (single >> i & 1) {
      level().move[size_index(size[i])](repeated[i], 0, size[i], source[i], 0, 0, 1, block);
      source[i] = repeated[i];
    }
  for (int64_t i = 0; i < n; i += kBlock) {
    const int64_t count = std::min(kBlock, n - i);
    loop(static_cast<char*>(out) + i * out_size, source[0] + (single & 1 ? 0 : i * size[0]),
         source[1] + (single & 2 ? 0 : i * size[1]), nullptr, count);
  }
}

void adam_step(ScalarType type, void* param, const void* grad, void* mean, void* square,
               const AdamStep& step, int64_t n) {
  level().adam[memory_slot(type)](param, grad, mean, square, step, n);
}

}  // namespace lamina::tile
