// Runs programs of pointwise operations, block by block.
#include <algorithm>
#include <cstring>

#include "lamina/core/error.h"
#include "lamina/event/event.h"
#include "lamina/queue/parallel.h"
#include "lamina/tile/plan.h"

namespace lamina::tile {

namespace {

constexpr int64_t kScratchBytes = 72 * 1024;
constexpr int64_t kStreamBytes = 8192;  // of a result that is streamed, computed at a time

template <int I>
inline constexpr OneOp kOneOp{static_cast<Op>(I)};

template <int... I>
constexpr auto make_table(std::integer_sequence<int, I...>) {
  struct Table {
    const Program* program[sizeof...(I)];
  };
  return Table{{&kOneOp<I>.program...}};
}
constexpr auto kOneOps = make_table(std::make_integer_sequence<int, kNumOps>{});

constexpr RegClass kCopyClasses[] = {RegClass::C};
constexpr uint8_t kCopyOutputs[] = {0};
constexpr Program kCopy{
    .classes = kCopyClasses, .outputs = kCopyOutputs, .num_inputs = 1, .num_registers = 1};

// Whether an instruction reads a register.
bool reads(const Program& program, int r) {
  for (int k = 0; k < program.num_instr; ++k) {
    const Instr& instr = program.code[k];
    const uint8_t sources[3] = {instr.a, instr.b, instr.c};
    for (int s = 0; s < op_info(instr.op).arity; ++s)
      if (sources[s] == r) return true;
  }
  return false;
}
// Whether it computes with numbers. A program may have some that nothing reads: the 1 of a + 1 * b.
bool reads_numbers(const Program& program) {
  for (int i = 0; i < program.num_scalars + program.num_constants; ++i)
    if (reads(program, program.num_inputs + i)) return true;
  return false;
}

// How a call's operands reach the registers; shared by all threads.
struct Machine {
  const Call& call;
  const Program& program;
  const Level& level;
  Plan plan;
  int num_outs, num_ins;
  ScalarType type[kMaxRegisters];  // of each register
  bool direct_in[kMaxOperands];    // the register is the operand's memory
  bool direct_out[kMaxOperands];
  bool stream_out[kMaxOperands];      // from a scratch register around the caches
  bool constant_in[kMaxOperands];     // loaded once
  int64_t scratch_at[kMaxRegisters];  // offset, or -1
  int64_t raw_at = 0;
  DirectLoop loop[256];

  explicit Machine(const Call& c) : call(c), program(*c.program), level(tile::level()) {}

  bool prepare();
  void work(int64_t begin, int64_t end) const;
  void load(char* to, int in, const char* from, int64_t rows, int64_t cols, char* raw) const;
  void store(int out, char* to, const char* from, ScalarType from_type, int64_t rows, int64_t cols,
             char* raw) const;
};

bool Machine::prepare() {
  num_outs = program.num_outputs;
  num_ins = program.num_inputs;
  plan.build(call.ndim, call.sizes, {call.outs, size_t(num_outs)}, {call.ins, size_t(num_ins)});
  if (plan.numel == 0) return false;
  for (int r = 0; r < program.num_registers; ++r) {
    const RegClass c = program.classes[r];
    type[r] = c == RegClass::B   ? ScalarType::Bool
              : c == RegClass::R ? to_real(call.compute)
                                 : call.compute;
  }
  for (int k = 0; k < program.num_instr; ++k) {
    loop[k] = direct_loop(program.code[k].op, call.compute);
    LAMINA_INTERNAL_CHECK(loop[k] != nullptr, op_info(program.code[k].op).name, " has no loop for ",
                          call.compute);
  }
  // Registers that may need room, to choose the block; an upper bound is good enough.
  int64_t bytes = 16;
  for (int r = 0; r < program.num_registers; ++r) bytes += static_cast<int64_t>(item_size(type[r]));
  int64_t block = kBlock;
  while (block > 64 && block * bytes + 64 * program.num_registers > kScratchBytes) block /= 2;
  plan.cut(block);

  for (int i = 0; i < num_ins; ++i) {
    const int op = num_outs + i;
    constant_in[i] = plan.constant(op) && plan.numel > 1;
    direct_in[i] = call.ins[i].dtype == type[i] && plan.adjacent(op) && !constant_in[i];
  }
  const int first_temporary = program.num_inputs + program.num_scalars + program.num_constants;
  for (int o = 0; o < num_outs; ++o) {
    const int r = program.outputs[o];
    bool ok = r >= first_temporary && call.outs[o].dtype == type[r] && plan.adjacent(o);
    for (int q = 0; q < o; ++q) ok = ok && program.outputs[q] != r;
    // Memory that a later instruction still reads as an input must not change before.
    int writer = 0;
    while (writer < program.num_instr && program.code[writer].dst != r) ++writer;
    for (int k = writer + 1; k < program.num_instr && ok; ++k) {
      const Instr& instr = program.code[k];
      const int arity = op_info(instr.op).arity;
      const uint8_t sources[3] = {instr.a, instr.b, instr.c};
      for (int s = 0; s < arity && ok; ++s)
        if (sources[s] < num_ins && direct_in[sources[s]])
          ok = !overlap(plan, o, num_outs + sources[s]);
    }
    direct_out[o] = ok;
  }
  int64_t in_bytes = 0;
  for (int i = 0; i < num_ins; ++i) in_bytes += plan.bytes(num_outs + i);
  for (int o = 0; o < num_outs; ++o) {
    stream_out[o] = call.outs[o].dtype == type[program.outputs[o]] &&
                    plan.stride[0][o] == plan.item[o] &&
                    streams(plan.bytes(o), in_bytes, kStreamBlocks);
    for (int i = 0; i < num_ins && stream_out[o]; ++i)
      stream_out[o] = !overlap(plan, o, num_outs + i);
    if (stream_out[o]) direct_out[o] = false;
  }
  // Nothing to keep in L1 between instructions: longer blocks.
  bool bare = program.num_instr == 1 && num_outs == 1 && direct_out[0] && !plan.transposed &&
              !reads_numbers(program);
  for (int i = 0; i < num_ins; ++i) bare = bare && direct_in[i];
  // Blocks stay within a row: operands that are adjacent row by row need not be beyond it.
  const auto cut_row = [&](int64_t block) {
    plan.cut(plan.ndim > 1 ? std::min(plan.size[0], block) : block);
  };
  if (bare && plan.rows == 1) cut_row(kParallelGrain / 2);
  // Streamed at once: as much as L1 holds beside the operands.
  bool streamed = program.num_instr == 1 && num_outs == 1 && stream_out[0] && plan.rows == 1 &&
                  !plan.transposed && !reads_numbers(program);
  for (int i = 0; i < num_ins; ++i) streamed = streamed && direct_in[i];
  if (streamed) cut_row(kStreamBytes / plan.item[0]);

  int64_t at = 0;
  const int64_t full = plan.rows * plan.cols;
  for (int r = 0; r < program.num_registers; ++r) {
    bool needs = !(r < num_ins && direct_in[r]) &&
                 (r < num_ins || r >= first_temporary || reads(program, r));
    for (int o = 0; o < num_outs; ++o) needs = needs && !(program.outputs[o] == r && direct_out[o]);
    scratch_at[r] = needs ? at : -1;
    if (needs) at += (full * static_cast<int64_t>(item_size(type[r])) + 63) / 64 * 64;
  }
  raw_at = at;
  return true;
}

void Machine::load(char* to, int in, const char* from, int64_t rows, int64_t cols,
                   char* raw) const {
  const int op = num_outs + in;
  const int64_t item = plan.item[op];
  const bool same = call.ins[in].dtype == type[in];
  const MoveLoop move = level.move[size_index(item)];
  if (same)
    return move(to, cols * item, item, from, plan.stride1(op), plan.stride[0][op], rows, cols);
  if (!plan.adjacent(op)) {
    move(raw, cols * item, item, from, plan.stride1(op), plan.stride[0][op], rows, cols);
    from = raw;
  }
  convert_block(level, to, memory_slot(type[in]), from, memory_slot(call.ins[in].dtype),
                rows * cols);
}

void Machine::store(int out, char* to, const char* from, ScalarType from_type, int64_t rows,
                    int64_t cols, char* raw) const {
  const int64_t item = plan.item[out];
  const ScalarType to_type = call.outs[out].dtype;
  if (from_type != to_type) {
    char* converted = plan.adjacent(out) ? to : raw;
    convert_block(level, converted, memory_slot(to_type), from, memory_slot(from_type),
                  rows * cols);
    if (converted == to) return;
    from = raw;
  }
  level.move[size_index(item)](to, plan.stride1(out), plan.stride[0][out], from, cols * item, item,
                               rows, cols);
}

void Machine::work(int64_t begin, int64_t end) const {
  alignas(64) char scratch[kScratchBytes];
  char* reg[kMaxRegisters];
  for (int r = 0; r < program.num_registers; ++r)
    reg[r] = scratch_at[r] >= 0 ? scratch + scratch_at[r] : nullptr;
  char* raw = scratch + raw_at;
  const int64_t full = std::min(plan.rows * plan.cols, plan.numel);
  const auto repeat = [&](int r, const void* value) {
    const int64_t item = static_cast<int64_t>(item_size(type[r]));
    level.move[size_index(item)](reg[r], 0, item, value, 0, 0, 1, full);
  };
  for (int i = 0; i < num_ins; ++i)
    if (constant_in[i]) {
      alignas(16) char value[16];
      convert(value, type[i], plan.base[num_outs + i], call.ins[i].dtype, 1);
      repeat(i, value);
    }
  for (int s = 0; s < program.num_scalars + program.num_constants; ++s) {
    const int r = num_ins + s;
    if (scratch_at[r] < 0) continue;
    alignas(16) char value[16];
    store_scalar(
        value, type[r],
        s < program.num_scalars ? call.scalars[s] : program.constants[s - program.num_scalars]);
    repeat(r, value);
  }
  BlockWalk walk(plan, begin);
  for (int64_t block = begin; block < end; ++block, walk.next()) {
    const int64_t rows = walk.rows();
    const int64_t cols = walk.cols();
    for (int i = 0; i < num_ins; ++i) {
      if (direct_in[i])
        reg[i] = walk.at(num_outs + i);
      else if (!constant_in[i])
        load(reg[i], i, walk.at(num_outs + i), rows, cols, raw);
    }
    for (int o = 0; o < num_outs; ++o)
      if (direct_out[o]) reg[program.outputs[o]] = walk.at(o);
    for (int k = 0; k < program.num_instr; ++k) {
      const Instr& instr = program.code[k];
      loop[k](reg[instr.dst], reg[instr.a], reg[instr.b], reg[instr.c], rows * cols);
    }
    for (int o = 0; o < num_outs; ++o)
      if (stream_out[o]) {
        const int64_t bytes = cols * plan.item[o];
        for (int64_t r = 0; r < rows; ++r)
          level.stream(walk.at(o) + r * plan.stride1(o), reg[program.outputs[o]] + r * bytes,
                       bytes);
      } else if (!direct_out[o]) {
        const int r = program.outputs[o];
        store(o, walk.at(o), reg[r], type[r], rows, cols, raw);
      }
  }
  for (int o = 0; o < num_outs; ++o)
    if (stream_out[o]) {
      level.stream(nullptr, nullptr, 0);
      break;
    }
}

// One instruction over adjacent operands of the right types is one loop: no blocks, no registers.
// Why a call is not of that kind; null where it is.
const char* refuses_direct(const Call& call, const Program& program) {
  if (program.num_instr != 1 || program.num_outputs != 1) return "more than one operation";
  const Instr& instr = program.code[0];
  if (program.outputs[0] != instr.dst || instr.dst < program.num_inputs)
    return "the result is an operand";
  if (reads_numbers(program)) return "a number beside the tensors";
  int64_t expected[kMaxDims];
  int64_t numel = 1;
  for (int d = call.ndim - 1; d >= 0; --d) {
    expected[d] = numel;
    numel *= call.sizes[d];
  }
  const auto mismatch = [&](const Operand& operand, RegClass c) -> const char* {
    const ScalarType type = c == RegClass::B   ? ScalarType::Bool
                            : c == RegClass::R ? to_real(call.compute)
                                               : call.compute;
    if (operand.dtype != type) return "an operand is converted on its way";
    for (int d = 0; d < call.ndim; ++d)
      if (call.sizes[d] != 1 && operand.strides[d] != expected[d])
        return "an operand is broadcast or its elements are not adjacent";
    return nullptr;
  };
  if (const char* why = mismatch(call.outs[0], program.classes[instr.dst])) return why;
  for (int i = 0; i < program.num_inputs; ++i)
    if (const char* why = mismatch(call.ins[i], program.classes[i])) return why;
  return nullptr;
}

void run_direct(const Call& call, const Program& program) {
  const Instr& instr = program.code[0];
  int64_t numel = 1;
  for (int d = 0; d < call.ndim; ++d) numel *= call.sizes[d];
  if (numel == 0) return;
  const DirectLoop loop = direct_loop(instr.op, call.compute);
  LAMINA_INTERNAL_CHECK(loop != nullptr, op_info(instr.op).name, " has no loop for ", call.compute);
  const OpInfo& info = op_info(instr.op);
  const uint8_t sources[3] = {instr.a, instr.b, instr.c};
  char* data[4] = {static_cast<char*>(call.outs[0].data), nullptr, nullptr, nullptr};
  int64_t item[4] = {static_cast<int64_t>(item_size(call.outs[0].dtype)), 0, 0, 0};
  for (int s = 0; s < info.arity; ++s) {
    data[s + 1] = static_cast<char*>(call.ins[sources[s]].data);
    item[s + 1] = static_cast<int64_t>(item_size(call.ins[sources[s]].dtype));
  }
  int64_t in_bytes = 0;
  bool in_place = false;
  for (int s = 1; s <= info.arity; ++s) {
    in_bytes += item[s] * numel;
    in_place = in_place || data[s] == data[0];
  }
  if (!in_place && level().streams_results && streams(item[0] * numel, in_bytes, kStreamDirect)) {
    const StreamLoop stream = level().stream;
    queue::parallel_for(0, numel, kParallelGrain, [&](int64_t b, int64_t e) {
      alignas(64) char block[kStreamBytes];
      const int64_t step = kStreamBytes / item[0];
      for (int64_t i = b; i < e; i += step) {
        const int64_t n = std::min(step, e - i);
        loop(block, data[1] + i * item[1], data[2] + i * item[2], data[3] + i * item[3], n);
        stream(data[0] + i * item[0], block, n * item[0]);
      }
      stream(nullptr, nullptr, 0);
    });
    return;
  }
  queue::parallel_for(0, numel, kParallelGrain, [&](int64_t b, int64_t e) {
    loop(data[0] + b * item[0], data[1] + b * item[1], data[2] + b * item[2], data[3] + b * item[3],
         e - b);
  });
}

}  // namespace

const Program& one_op(Op op) { return *kOneOps.program[static_cast<int>(op)]; }
const Program& copy_program() { return kCopy; }

namespace {
[[gnu::cold]] void report(const Call& call, const Program& program, const char* refused) {
  int64_t elements = 1;
  for (int i = 0; i < call.ndim; ++i) elements *= call.sizes[i];
  const bool one = program.num_instr == 1;
  if (refused) event::t_listener->on_refusal("direct loop", refused);
  event::report({!refused ? "direct loop"
                 : one    ? "tile operation"
                          : "tile program",
                 one ? op_info(program.code[0].op).name.data() : "several operations",
                 isa_name().data(), elements});
}
}  // namespace

void run(const Call& call) {
  const Program& program = *call.program;
  if (program.num_instr == 0 && program.num_outputs == 1 && program.outputs[0] < program.num_inputs)
    return copy(call.outs[0], call.ins[program.outputs[0]], call.ndim, call.sizes);
  const char* refused = refuses_direct(call, program);
  if (event::listening()) [[unlikely]]
    report(call, program, refused);
  if (!refused) return run_direct(call, program);
  Machine machine(call);
  if (!machine.prepare()) return;
  const Plan& plan = machine.plan;
  const int64_t grain = std::max<int64_t>(1, kParallelGrain / (plan.rows * plan.cols));
  queue::parallel_for(0, plan.num_blocks, grain, [&](int64_t b, int64_t e) { machine.work(b, e); });
}

}  // namespace lamina::tile
