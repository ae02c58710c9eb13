// softmax, log_softmax and their backward kernels along any dimension.
#include <algorithm>
#include <cstring>
#include <memory>

#include "lamina/core/error.h"
#include "lamina/event/event.h"
#include "lamina/queue/parallel.h"
#include "lamina/tile/along.h"
#include "lamina/tile/plan.h"

namespace lamina::tile {

namespace {

// Rows of at most kShortRow elements, kShortRows of them together.
void softmax_of_short_rows(const SoftmaxCall& call, const Along& a, const Operand* operands,
                           int slot, ScalarType type) {
  const Level& l = level();
  const auto kernel = l.rows[slot].short_rows[static_cast<int>(call.kind)];
  const int64_t n = a.length;
  const int64_t grain = std::max<int64_t>(1, kParallelGrain / (kShortRows * n));
  queue::parallel_for(0, a.num_groups(kShortRows), grain, [&](int64_t b, int64_t e) {
    // [out][in0][in1][as in memory]; lanes without a row compute with zeros
    constexpr int64_t kRoom = kShortRow * kShortRows * 8;
    alignas(64) char memory[4][kRoom];
    std::memset(memory, 0, sizeof memory);
    for (int64_t task = b; task < e; ++task) {
      int64_t first, members;
      a.group_at(task, kShortRows, first, members);
      for (int o = 1; o < a.num; ++o) {
        const bool same = operands[o].dtype == type;
        l.move[size_index(a.item[o])](memory[same ? o : 3], a.item[o], kShortRows * a.item[o],
                                      a.at(o, first), a.stride[0][o], a.step[o], members, n);
        if (!same)
          convert_block(l, memory[o], slot, memory[3], memory_slot(operands[o].dtype),
                        kShortRows * n);
      }
      kernel(memory[0], memory[1], memory[2], n);
      const bool same = call.out.dtype == type;
      if (!same)
        convert_block(l, memory[3], memory_slot(call.out.dtype), memory[0], slot, kShortRows * n);
      l.move[size_index(a.item[0])](a.at(0, first), a.stride[0][0], a.step[0], memory[same ? 0 : 3],
                                    a.item[0], kShortRows * a.item[0], members, n);
    }
  });
}

}  // namespace

void softmax(const SoftmaxCall& call) {
  const ScalarType type = compute_type(call.accumulate);
  LAMINA_INTERNAL_CHECK(is_floating(type), "softmax computes in float32 or float64; got ", type);
  const bool backward =
      call.kind == Softmax::softmax_backward || call.kind == Softmax::log_softmax_backward;
  const int num = backward ? 3 : 2;
  const Operand operands[] = {call.out, call.in0, call.in1};
  const Along a(call.ndim, call.sizes, call.dim, {operands, size_t(num)});
  if (a.count == 0 || a.length == 0) return;
  if (event::listening()) [[unlikely]]
    event::report({"tile rows", "softmax", isa_name().data(), a.count * a.length});

  const Level& l = level();
  const int slot = memory_slot(type);
  if (a.length <= kShortRow) return softmax_of_short_rows(call, a, operands, slot, type);
  const RowKernels& rows = l.rows[slot];
  const int64_t item = static_cast<int64_t>(item_size(type));
  const int64_t n = a.length;
  const auto kernel = [&](char* out, const char* x, const char* y) {
    switch (call.kind) {
      case Softmax::softmax:
        return rows.softmax(out, x, n);
      case Softmax::log_softmax:
        return rows.log_softmax(out, x, n);
      case Softmax::softmax_backward:
        return rows.softmax_backward(out, x, y, n);
      case Softmax::log_softmax_backward:
        return rows.log_softmax_backward(out, x, y, n);
    }
  };
  bool direct[3] = {};
  bool all_direct = true;
  for (int o = 0; o < num; ++o) {
    direct[o] = operands[o].dtype == type && (a.step[o] == item || n == 1);
    all_direct = all_direct && direct[o];
  }
  if (all_direct) {
    queue::parallel_for(0, a.count, std::max<int64_t>(1, kParallelGrain / n),
                        [&](int64_t b, int64_t e) {
                          for (int64_t p = b; p < e; ++p)
                            kernel(a.at(0, p), a.at(1, p), backward ? a.at(2, p) : nullptr);
                        });
    return;
  }
  // Rows are gathered, a few neighbours together so that a column's cache lines are used whole.
  constexpr int64_t kRoom = int64_t{1} << 18;  // elements
  const int64_t group = std::clamp<int64_t>(kRoom / n, 1, 16);
  const int64_t grain = std::max<int64_t>(1, kParallelGrain / (group * n));
  queue::parallel_for(0, a.num_groups(group), grain, [&](int64_t b, int64_t e) {
    const int64_t room = (group * n * item + 63) / 64 * 64;
    // [out][in0][in1][as in memory]
    const auto memory =
        std::make_unique_for_overwrite<char[]>(static_cast<size_t>(room * 3 + group * n * 16));
    char* raw = memory.get() + room * 3;
    for (int64_t task = b; task < e; ++task) {
      int64_t first, members;
      a.group_at(task, group, first, members);
      for (int o = 1; o < num; ++o) {
        const bool same = operands[o].dtype == type;
        char* to = memory.get() + o * room;
        l.move[size_index(a.item[o])](same ? to : raw, n * a.item[o], a.item[o], a.at(o, first),
                                      a.stride[0][o], a.step[o], members, n);
        if (!same) convert_block(l, to, slot, raw, memory_slot(operands[o].dtype), members * n);
      }
      for (int64_t m = 0; m < members; ++m)
        kernel(memory.get() + m * n * item, memory.get() + room + m * n * item,
               memory.get() + 2 * room + m * n * item);
      const bool same = call.out.dtype == type;
      if (!same)
        convert_block(l, raw, memory_slot(call.out.dtype), memory.get(), slot, members * n);
      l.move[size_index(a.item[0])](a.at(0, first), a.stride[0][0], a.step[0],
                                    same ? memory.get() : raw, n * a.item[0], a.item[0], members,
                                    n);
    }
  });
}

}  // namespace lamina::tile
