// The tile machine: programs of pointwise operations over L1-sized blocks of strided operands.
// It works on raw pointers and knows no Tensor. Semantics of the operations: lamina/tile/ops.def.
#pragma once

#include <cstdint>
#include <string_view>

#include "lamina/core/scalar.h"
#include "lamina/core/scalar_type.h"

namespace lamina::tile {

inline constexpr int kMaxDims = 64;
inline constexpr int kMaxOperands = 24;  // inputs + outputs of a program
inline constexpr int kMaxRegisters = 64;

enum class Op : uint8_t {
#define LAMINA_TILE_OP(name, arity, inputs, output, categories) name,
#include "lamina/tile/ops.def"
#undef LAMINA_TILE_OP
};

// What a register holds: an element of the compute type, a bool byte, or (in complex programs) a
// real part.
enum class RegClass : uint8_t { C, B, R };

struct OpInfo {
  std::string_view name;
  uint8_t arity;
  RegClass in[3];
  RegClass out;
  std::string_view categories;  // letters of b, i, f, c
};

namespace detail {
constexpr RegClass reg_class(char c) {
  return c == 'B' ? RegClass::B : c == 'R' ? RegClass::R : RegClass::C;
}
constexpr OpInfo make_info(std::string_view name, uint8_t arity, std::string_view in, char out,
                           std::string_view categories) {
  OpInfo info{name, arity, {RegClass::C, RegClass::C, RegClass::C}, reg_class(out), categories};
  for (size_t i = 0; i < in.size(); ++i) info.in[i] = reg_class(in[i]);
  return info;
}
inline constexpr OpInfo kOps[] = {
#define LAMINA_TILE_OP(name, arity, inputs, output, categories) \
  make_info(#name, arity, inputs, output, categories),
#include "lamina/tile/ops.def"
#undef LAMINA_TILE_OP
};
}  // namespace detail

inline constexpr int kNumOps = static_cast<int>(sizeof(detail::kOps) / sizeof(detail::kOps[0]));
constexpr const OpInfo& op_info(Op op) { return detail::kOps[static_cast<int>(op)]; }
// False if there is none of that name.
constexpr bool op_from_name(std::string_view name, Op& op) {
  for (int i = 0; i < kNumOps; ++i)
    if (detail::kOps[i].name == name) {
      op = static_cast<Op>(i);
      return true;
    }
  return false;
}
// Whether `op` exists for a compute type (reduced floating types are computed in float32).
constexpr bool op_supports(Op op, ScalarType compute) {
  const char c = is_bool(compute)       ? 'b'
                 : is_integral(compute) ? 'i'
                 : is_complex(compute)  ? 'c'
                                        : 'f';
  return op_info(op).categories.find(c) != std::string_view::npos;
}

// dst = op(a, b, c); unused sources are 0. dst may be one of the sources.
struct Instr {
  Op op;
  uint8_t dst = 0, a = 0, b = 0, c = 0;
};

// Registers are numbered: inputs, scalars (run-time numbers), constants (in the program),
// temporaries. Inputs, scalars and constants are never written. A program without instructions
// whose output is register 0 is a copy.
struct Program {
  const Instr* code = nullptr;
  const RegClass* classes = nullptr;  // of all registers; scalars and constants are C or R
  const uint8_t* outputs = nullptr;   // the registers stored to the outputs
  const Scalar* constants = nullptr;
  uint8_t num_instr = 0, num_inputs = 0, num_scalars = 0, num_constants = 0, num_outputs = 1;
  uint8_t num_registers = 0;
};

// Owner of the arrays of a program of one operation, to be made constexpr:
//   static constexpr OneOp kAdd{Op::add};   run({.program = &kAdd.program, ...})
struct OneOp {
  Instr code[1];
  RegClass classes[4];
  uint8_t outputs[1];
  Program program;
  constexpr explicit OneOp(Op op)
      : code{{op, op_info(op).arity, 0, uint8_t(op_info(op).arity > 1 ? 1 : 0),
              uint8_t(op_info(op).arity > 2 ? 2 : 0)}},
        classes{},
        outputs{op_info(op).arity} {
    const OpInfo& info = op_info(op);
    for (int i = 0; i < info.arity; ++i) classes[i] = info.in[i];
    classes[info.arity] = info.out;
    program = {.code = code,
               .classes = classes,
               .outputs = outputs,
               .constants = nullptr,
               .num_instr = 1,
               .num_inputs = info.arity,
               .num_scalars = 0,
               .num_constants = 0,
               .num_outputs = 1,
               .num_registers = uint8_t(info.arity + 1)};
  }
  OneOp(const OneOp&) = delete;
  OneOp& operator=(const OneOp&) = delete;
};
// The program of one operation, from a table of constants.
const Program& one_op(Op op);
const Program& copy_program();

// One array: address of the element at index zero, strides in elements (signed; 0 where broadcast).
struct Operand {
  void* data = nullptr;
  ScalarType dtype = ScalarType::Float32;
  const int64_t* strides = nullptr;  // `ndim` of them
};

// outs[i] may be exactly the same memory as an input (in-place); any other overlap is the caller's
// to refuse. Inputs are converted to the type of their register on load, outputs to their dtype on
// store.
struct Call {
  const Program* program = nullptr;
  ScalarType compute = ScalarType::Float32;  // not a reduced floating type
  int ndim = 0;
  const int64_t* sizes = nullptr;
  const Operand* outs = nullptr;
  const Operand* ins = nullptr;
  const Scalar* scalars = nullptr;
};

// Parallel over fixed chunks. Raises RuntimeError "ZeroDivisionError" for an integer division by
// zero.
void run(const Call& call);

// Copies with conversion (complex to real takes the real part, anything to bool is != 0).
void copy(const Operand& out, const Operand& in, int ndim, const int64_t* sizes);
// The same for n adjacent elements, on the calling thread.
void convert(void* out, ScalarType out_type, const void* in, ScalarType in_type, int64_t n);
// Copies of pieces of memory, on the calling thread, that go around the caches: measured faster
// where the whole exceeds them. end() comes last, before another thread reads.
struct StreamedCopy {
  static bool pays(int64_t out_bytes, int64_t in_bytes);
  static void piece(void* out, const void* in, int64_t bytes);
  static void end();
};
// Writes `value`, converted to `type`, at `out`.
void store_scalar(void* out, ScalarType type, const Scalar& value);
Scalar load_scalar(const void* in, ScalarType type);
// Sets every element to `value`.
void fill(const Operand& out, int ndim, const int64_t* sizes, const Scalar& value);

// The loop of one operation over n adjacent elements of the types of its classes; unused sources
// are null. Runs on the calling thread. Null where the operation does not exist. `out` may be
// exactly one of the sources.
using DirectLoop = void (*)(void* out, const void* a, const void* b, const void* c, int64_t n);
namespace detail {
inline constexpr int kTypeSlots = 16;
extern const DirectLoop* g_loops;  // [op][type slot]; null until the level is chosen
const DirectLoop* choose_loops();
constexpr int8_t kSlotOf[kNumScalarTypeSlots] = {
    // UInt8 Int8 Int16 Int32 Int64 Float16 Float32 Float64 - Complex64 Complex128 Bool
    1, 5, 6, 7, 8, -1, 9, 10, -1, 11, 12, 0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
    -1,
    // UInt16 UInt32 UInt64
    2, 3, 4};
}  // namespace detail
inline DirectLoop direct_loop(Op op, ScalarType compute) {
  // Another thread may be choosing.
  const DirectLoop* loops = __atomic_load_n(&detail::g_loops, __ATOMIC_ACQUIRE);
  if (!loops) [[unlikely]]
    loops = detail::choose_loops();
  const int slot = detail::kSlotOf[index_of(compute)];
  return slot < 0 ? nullptr : loops[static_cast<int>(op) * detail::kTypeSlots + slot];
}
// A binary operation over n adjacent elements where one side is a single element: bit i of `single`
// set means that source i (0 = a, 1 = b) is one element. On the calling thread. For n == 1 call the
// direct loop itself.
void direct_with_single(Op op, ScalarType compute, int single, void* out, const void* a,
                        const void* b, int64_t n);

// Number of elements from which run() is worth its parallel split; direct paths should stay below
// it.
inline constexpr int64_t kParallelGrain = 32768;

// ---- reductions
// -------------------------------------------------------------------------------------------------
enum class Reduce : uint8_t {
  sum,
  nansum,
  prod,
  mean,
  amax,
  amin,
  any,
  all,
  count_nonzero,
  argmax,
  argmin,  // out: int64 index in the flattened reduced dimensions; first one wins; NaN wins
  max_index,
  min_index,  // out: value, out_index: int64
  var,
  std_dev,  // `correction` is subtracted from the count
  logsumexp,
  norm2,  // norm2: sqrt of the sum of |x|^2
};

struct ReduceCall {
  Reduce kind = Reduce::sum;
  // Type of the map program and of the accumulator (Int64 for integer sums; Float32 for bfloat16;
  // Bool for any/all or the input's type). Results are converted to out.dtype.
  ScalarType accumulate = ScalarType::Float32;
  int ndim = 0;
  const int64_t* sizes = nullptr;  // of the input
  const bool* reduced = nullptr;   // by dimension
  Operand input;
  Operand out;        // strides have `ndim` entries; those of reduced dimensions are ignored
  Operand out_index;  // for max_index, min_index; mean of var/std if data is set
  double correction = 1;
  // Optional: one input, one output of class C, applied to each element after load in type
  // `accumulate`.
  const Program* map = nullptr;
  const Scalar* scalars = nullptr;
};
// Fixed trees over fixed chunks. amax/amin/arg*/max_index of nothing raise Index errors; sum of
// nothing is 0, mean nan.
void reduce(const ReduceCall& call);
// n adjacent elements of `type` into one of the same type, with the bits of reduce(). False where
// they are more than a leaf of its tree, or the kind is no plain fold: nothing is written then.
bool reduce_leaf(Reduce kind, ScalarType type, void* out, const void* x, int64_t n);

// ---- along one dimension
// ------------------------------------------------------------------------------------------
enum class Scan : uint8_t { cumsum, cumprod, cummax, cummin, logcumsumexp };
struct ScanCall {
  Scan kind = Scan::cumsum;
  ScalarType accumulate = ScalarType::Float32;
  int ndim = 0;
  const int64_t* sizes = nullptr;
  int dim = 0;
  Operand input, out;
  Operand out_index;  // int64, for cummax and cummin
};
void scan(const ScanCall& call);

enum class Softmax : uint8_t {
  softmax,               // in0 = x
  log_softmax,           // in0 = x
  softmax_backward,      // in0 = grad, in1 = y: y * (grad - sum(grad * y))
  log_softmax_backward,  // in0 = grad, in1 = y: grad - exp(y) * sum(grad)
};
struct SoftmaxCall {
  Softmax kind = Softmax::softmax;
  ScalarType accumulate = ScalarType::Float32;  // Float32 or Float64
  int ndim = 0;
  const int64_t* sizes = nullptr;
  int dim = 0;
  Operand out, in0, in1;
};
void softmax(const SoftmaxCall& call);

// ---- instruction sets
// ---------------------------------------------------------------------------------------------
enum class Isa : uint8_t { Baseline, Avx2, Avx512 };
std::string_view isa_name();  // of the level in use: "baseline", "avx2", "avx512"
Isa isa();
bool isa_available(Isa level);  // built in, and this machine has it
bool set_isa(Isa level);        // for tests; not while work runs. False if not available

}  // namespace lamina::tile
