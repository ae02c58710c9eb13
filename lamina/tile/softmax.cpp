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

// Gathers rows into working arrays of the computing type, `group` neighbours together so that a
// column's cache lines are used whole, calls kernel(out, in0, in1, rows) and brings the result
// back. With `lanes` element k of row r lies at [k * group + r], and lanes without a row compute
// with zeros; otherwise rows are adjacent.
template <class F>
void by_groups(const SoftmaxCall& call, const Along& a, const Operand* operands, ScalarType type,
               int64_t group, bool lanes, F&& kernel) {
  const Level& l = level();
  const int slot = memory_slot(type);
  const int64_t item = static_cast<int64_t>(item_size(type)), n = a.length;
  const int64_t row = lanes ? 1 : n, column = lanes ? group : 1;  // steps, in elements
  // [out][in0][in1][as in memory]
  const int64_t room = (group * n * item + 63) / 64 * 64, raw_room = group * n * 16;
  const int64_t grain = std::max<int64_t>(1, kParallelGrain / (group * n));
  queue::parallel_for(0, a.num_groups(group), grain, [&](int64_t b, int64_t e) {
    alignas(64) char near[20480];
    std::unique_ptr<char[]> far;
    char* memory = near;
    if (3 * room + raw_room > int64_t(sizeof near)) {
      far = std::make_unique_for_overwrite<char[]>(static_cast<size_t>(3 * room + raw_room));
      memory = far.get();
    }
    char* raw = memory + 3 * room;
    for (int64_t task = b; task < e; ++task) {
      int64_t first, members;
      a.group_at(task, group, first, members);
      const int64_t count = (lanes ? group : members) * n;
      if (lanes && members < group)
        std::memset(memory + room, 0, static_cast<size_t>(2 * room + raw_room));
      for (int o = 1; o < a.num; ++o) {
        const bool same = operands[o].dtype == type;
        char* to = memory + o * room;
        l.move[size_index(a.item[o])](same ? to : raw, row * a.item[o], column * a.item[o],
                                      a.at(o, first), a.stride[0][o], a.step[o], members, n);
        if (!same) convert_block(l, to, slot, raw, memory_slot(operands[o].dtype), count);
      }
      kernel(memory, memory + room, memory + 2 * room, members);
      const bool same = call.out.dtype == type;
      if (!same) convert_block(l, raw, memory_slot(call.out.dtype), memory, slot, count);
      l.move[size_index(a.item[0])](a.at(0, first), a.stride[0][0], a.step[0], same ? memory : raw,
                                    row * a.item[0], column * a.item[0], members, n);
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

  const RowKernels& rows = level().rows[memory_slot(type)];
  const int64_t item = static_cast<int64_t>(item_size(type));
  const int64_t n = a.length;
  if (n <= kShortRow)
    return by_groups(call, a, operands, type, kShortRows, true,
                     [short_rows = rows.short_rows[static_cast<int>(call.kind)], n](
                         char* out, const char* in0, const char* in1, int64_t) {
                       short_rows(out, in0, in1, n);
                     });
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
  bool all_direct = true;
  for (int o = 0; o < num; ++o)
    all_direct = all_direct && operands[o].dtype == type && a.step[o] == item;
  if (all_direct) {
    queue::parallel_for(0, a.count, std::max<int64_t>(1, kParallelGrain / n),
                        [&](int64_t b, int64_t e) {
                          for (int64_t p = b; p < e; ++p)
                            kernel(a.at(0, p), a.at(1, p), backward ? a.at(2, p) : nullptr);
                        });
    return;
  }
  constexpr int64_t kRoom = int64_t{1} << 18;  // elements
  by_groups(call, a, operands, type, std::clamp<int64_t>(kRoom / n, 1, 16), false,
            [&](char* out, const char* in0, const char* in1, int64_t members) {
              for (int64_t m = 0; m < members; ++m)
                kernel(out + m * n * item, in0 + m * n * item, in1 + m * n * item);
            });
}

}  // namespace lamina::tile
