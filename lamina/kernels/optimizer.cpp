// Steps of optimizers: one program of pointwise operations over every parameter of a group.
// A program works on blocks that stay in L1, as the tile machine's do; what differs is that its
// operands are lists of tensors, so that a step of many small parameters is one loop.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "lamina/core/error.h"
#include "lamina/generated/declarations.h"
#include "lamina/kernels/result.h"
#include "lamina/queue/parallel.h"
#include "lamina/tile/adam.h"
#include "lamina/tile/tile.h"

namespace lamina {

namespace {

using tile::Op;

constexpr int kMaxTensors = 5;  // parameter, gradient and up to three states
constexpr int kMaxNumbers = 10;
constexpr int kTemporaries = 2;
constexpr int kRegisters = kMaxTensors + kMaxNumbers + kTemporaries;
constexpr int kMaxCode = 24;
constexpr int64_t kBlockBytes = 2048;      // of one register
constexpr int64_t kChunkElements = 16384;  // of one parameter, in parallel

constexpr int kFirstNumber = kMaxTensors;
constexpr int kT0 = kMaxTensors + kMaxNumbers, kT1 = kT0 + 1;

using Numbers = std::array<double, kMaxNumbers>;

// What one parameter is worked on with.
struct Item {
  void* data[kMaxTensors] = {};
  ScalarType dtype[kMaxTensors] = {};
  ScalarType compute = ScalarType::Float32;
  int64_t numel = 0;
  size_t numbers = 0;  // index of its set
};

struct Chunk {
  uint32_t item;
  int64_t begin, end;
};

// Builds and runs the program of one call. Registers: tensors in the order of the lists, numbers,
// two temporaries.
class Step {
 public:
  Step(const char* name, TensorList params, TensorList grads) : name_(name) {
    lists_[0] = params;
    state(grads);
  }

  // A list of states, written by the step; its register.
  int state(TensorList list) {
    LAMINA_CHECK(list.size() == lists_[0].size(), name_,
                 ": every parameter needs its gradient and states; got ", lists_[0].size(),
                 " parameters and ", list.size(), " of them");
    lists_[num_lists_] = list;
    return num_lists_++;
  }
  // A number that every set gives a value; its register.
  int number() {
    LAMINA_INTERNAL_CHECK(num_numbers_ < kMaxNumbers, name_, ": too many numbers");
    return kFirstNumber + num_numbers_++;
  }
  void op(Op op, int dst, int a, int b = 0, int c = 0) {
    LAMINA_INTERNAL_CHECK(num_code_ < kMaxCode, name_, ": program too long");
    code_[num_code_++] = {op, uint8_t(dst), uint8_t(a), uint8_t(b), uint8_t(c)};
  }
  // self + number * a * b, as addcmul computes it.
  void addcmul(int self, int number, int a, int b) {
    op(Op::mul, kT0, number, a);
    op(Op::mul, kT0, kT0, b);
    op(Op::add, self, self, kT0);
  }
  // self + number * a / b, as addcdiv computes it; `b` may be the first temporary.
  void addcdiv(int self, int number, int a, int b) {
    op(Op::mul, kT1, number, a);
    op(Op::div, kT1, kT1, b);
    op(Op::add, self, self, kT1);
  }
  // dst = self + number * other.
  void add_scaled(int dst, int self, int number, int other) {
    op(Op::mul, kT0, number, other);
    op(Op::add, dst, self, kT0);
  }

  // The program is Adam's, of the first seven numbers: there is one loop for it.
  void use_adam(bool shrink, bool penalty, bool maximize) {
    is_adam_ = true;
    adam_.shrink = shrink;
    adam_.penalty = penalty;
    adam_.maximize = maximize;
  }

  // Whether every operand is what a program can work on: real floating numbers that are there,
  // gradients and states of the parameter's sizes.
  bool serves() const {
    for (size_t i = 0; i < lists_[0].size(); ++i)
      for (int k = 0; k < num_lists_; ++k) {
        const Tensor& t = lists_[k][i];
        if (!is_floating(t.dtype()) || !t.device().is_cpu() || t.sizes() != lists_[0][i].sizes())
          return false;
      }
    return true;
  }

  // `set_of(i)` gives the index of parameter i's numbers in `sets`.
  template <class SetOf>
  void run(const std::vector<Numbers>& sets, SetOf&& set_of) {
    const size_t n = lists_[0].size();
    items_.reserve(n);
    chunks_.reserve(n);
    int64_t total = 0;
    for (size_t i = 0; i < n; ++i) {
      add_item(i);
      items_.back().numbers = set_of(i);
      total += items_.back().numel;
      for (int64_t at = 0; at < items_.back().numel; at += kChunkElements)
        chunks_.push_back({uint32_t(i), at, std::min(at + kChunkElements, items_.back().numel)});
    }
    const auto body = [&](int64_t b, int64_t e) { work(sets, b, e); };
    const auto count = static_cast<int64_t>(chunks_.size());
    if (total <= tile::kParallelGrain)
      queue::parallel_for(0, count, count, body);
    else
      queue::parallel_for(0, count, 1, body);
    for (const Copy& copy : copies_) copy_values(copy.target, copy.values);
  }

 private:
  struct Copy {
    Tensor target, values;
  };

  void add_item(size_t i) {
    Item item;
    const Tensor& p = lists_[0][i];
    item.compute = compute_type(p.dtype());
    item.numel = p.numel();
    bool in_memory_order = p.is_non_overlapping_and_dense();
    for (int k = 1; k < num_lists_; ++k)
      in_memory_order = in_memory_order && lists_[k][i].strides() == p.strides();
    for (int k = 0; k < num_lists_; ++k) {
      const Tensor& t = lists_[k][i];
      item.dtype[k] = t.dtype();
      if (in_memory_order || t.is_contiguous()) {
        item.data[k] = t.data();
        continue;
      }
      if (k != 1) check_no_internal_overlap(t, name_);
      copies_.push_back({k == 1 ? Tensor() : t, contiguous_values(t)});
      item.data[k] = copies_.back().values.data();
      if (k == 1) grads_.push_back(std::move(copies_.back().values)), copies_.pop_back();
    }
    items_.push_back(item);
  }

  void work(const std::vector<Numbers>& sets, int64_t first, int64_t last) const {
    alignas(64) char scratch[kRegisters][kBlockBytes];
    void* reg[kRegisters];
    size_t filled_set = sets.size();
    ScalarType filled_type = ScalarType::Bool;
    int64_t filled = 0;
    for (int64_t c = first; c < last; ++c) {
      const Chunk& chunk = chunks_[c];
      const Item& item = items_[chunk.item];
      const ScalarType type = item.compute;
      const auto size = static_cast<int64_t>(item_size(type));
      const int64_t block = kBlockBytes / size;
      const int64_t longest = std::min(block, chunk.end - chunk.begin);
      if (is_adam_) {
        work_adam(sets[item.numbers], item, chunk, scratch);
        continue;
      }
      for (int r = kFirstNumber; r < kRegisters; ++r) reg[r] = scratch[r];
      if (filled_set != item.numbers || filled_type != type || filled < longest) {
        for (int k = 0; k < num_numbers_; ++k)
          repeat(scratch[kFirstNumber + k], type, sets[item.numbers][k], longest);
        filled_set = item.numbers, filled_type = type, filled = longest;
      }
      tile::DirectLoop loops[kMaxCode];
      for (int k = 0; k < num_code_; ++k) loops[k] = tile::direct_loop(code_[k].op, type);
      for (int64_t at = chunk.begin; at < chunk.end; at += block) {
        const int64_t n = std::min(block, chunk.end - at);
        for (int k = 0; k < num_lists_; ++k) {
          char* memory = static_cast<char*>(item.data[k]) +
                         at * static_cast<int64_t>(item_size(item.dtype[k]));
          reg[k] = memory;
          if (item.dtype[k] == type) continue;
          reg[k] = scratch[k];
          tile::convert(scratch[k], type, memory, item.dtype[k], n);
        }
        for (int k = 0; k < num_code_; ++k) {
          const tile::Instr& instr = code_[k];
          loops[k](reg[instr.dst], reg[instr.a], reg[instr.b], reg[instr.c], n);
        }
        for (int k = 0; k < num_lists_; ++k)
          if (k != 1 && item.dtype[k] != type)
            tile::convert(static_cast<char*>(item.data[k]) +
                              at * static_cast<int64_t>(item_size(item.dtype[k])),
                          item.dtype[k], scratch[k], type, n);
      }
    }
  }

  using Scratch = char[kRegisters][kBlockBytes];
  void work_adam(const Numbers& numbers, const Item& item, const Chunk& chunk,
                 Scratch& scratch) const {
    tile::AdamStep step = adam_;
    step.decay = numbers[0], step.weight1 = numbers[1], step.keep2 = numbers[2];
    step.weight2 = numbers[3], step.correction2 = numbers[4], step.epsilon = numbers[5];
    step.rate = numbers[6];
    const ScalarType type = item.compute;
    const bool converts =
        std::any_of(item.dtype, item.dtype + 4, [&](ScalarType t) { return t != type; });
    const int64_t block =
        converts ? kBlockBytes / static_cast<int64_t>(item_size(type)) : chunk.end - chunk.begin;
    for (int64_t at = chunk.begin; at < chunk.end; at += block) {
      const int64_t n = std::min(block, chunk.end - at);
      char *memory[4], *values[4];
      for (int k = 0; k < 4; ++k) {
        memory[k] =
            static_cast<char*>(item.data[k]) + at * static_cast<int64_t>(item_size(item.dtype[k]));
        values[k] = item.dtype[k] == type ? memory[k] : scratch[k];
        if (item.dtype[k] != type) tile::convert(scratch[k], type, memory[k], item.dtype[k], n);
      }
      tile::adam_step(type, values[0], values[1], values[2], values[3], step, n);
      for (int k = 0; k < 4; ++k)
        if (k != 1 && item.dtype[k] != type)
          tile::convert(memory[k], item.dtype[k], scratch[k], type, n);
    }
  }

  static void repeat(char* to, ScalarType type, double value, int64_t n) {
    if (type == ScalarType::Float64)
      std::fill_n(reinterpret_cast<double*>(to), n, value);
    else
      std::fill_n(reinterpret_cast<float*>(to), n, static_cast<float>(value));
  }

  const char* name_;
  TensorList lists_[kMaxTensors];
  int num_lists_ = 1;
  bool is_adam_ = false;
  tile::AdamStep adam_{};
  int num_numbers_ = 0;
  tile::Instr code_[kMaxCode];
  int num_code_ = 0;
  std::vector<Item> items_;
  std::vector<Chunk> chunks_;
  std::vector<Copy> copies_;   // states that lie scattered: worked on in copies
  std::vector<Tensor> grads_;  // gathered gradients, kept until the end
};

bool are_counts(TensorList params, TensorList steps) {
  if (params.size() != steps.size()) return false;
  for (const Tensor& t : steps)
    if (t.numel() != 1 || !is_floating(t.dtype()) || !t.device().is_cpu()) return false;
  return true;
}

// The steps of all parameters counted on, and the numbers of those that have reached one count.
class Counts {
 public:
  explicit Counts(TensorList steps) {
    set_of_.reserve(steps.size());
    for (const Tensor& t : steps) {
      const double step = tile::load_scalar(t.data(), t.dtype()).to_double() + 1;
      tile::store_scalar(t.data(), t.dtype(), Scalar(step));
      size_t k = 0;
      while (k < counts_.size() && counts_[k] != step) ++k;
      if (k == counts_.size()) counts_.push_back(step);
      set_of_.push_back(k);
    }
  }
  template <class Make>
  std::vector<Numbers> numbers(Make&& make) const {
    std::vector<Numbers> sets;
    sets.reserve(counts_.size());
    for (double step : counts_) sets.push_back(make(step));
    return sets;
  }
  size_t operator()(size_t i) const { return set_of_[i]; }

 private:
  std::vector<double> counts_;
  std::vector<size_t> set_of_;
};

constexpr int kParam = 0, kGrad = 1;

// The gradient with its sign and the penalty of the weights: its register, where that is not the
// gradient's own. Register T1 holds it, so no formula may use T1 before it has read it.
int prepared_gradient(Step& step, bool maximize, bool penalty, int weight_decay) {
  int grad = kGrad;
  if (maximize) {
    step.op(Op::neg, kT1, grad);
    grad = kT1;
  }
  if (penalty) {
    step.add_scaled(kT1, grad, weight_decay, kParam);
    grad = kT1;
  }
  return grad;
}

}  // namespace

namespace kernels {

bool sgd_step(TensorList self, TensorList grads, TensorList momentum_buffers, double lr,
              double weight_decay, double momentum, double dampening, bool nesterov,
              bool maximize) {
  Step step("_sgd_step_", self, grads);
  const int decay = step.number(), rate = step.number(), factor = step.number(),
            taken = step.number();
  int grad = prepared_gradient(step, maximize, weight_decay != 0, decay);
  if (momentum != 0) {
    const int buffer = step.state(momentum_buffers);
    step.op(Op::mul, buffer, buffer, factor);
    step.add_scaled(buffer, buffer, taken, grad);
    if (nesterov) {
      step.add_scaled(kT1, grad, factor, buffer);
      grad = kT1;
    } else {
      grad = buffer;
    }
  }
  step.add_scaled(kParam, kParam, rate, grad);
  if (!step.serves()) return false;
  step.run({Numbers{weight_decay, -lr, momentum, 1 - dampening}}, [](size_t) { return size_t{0}; });
  return true;
}

bool adam_step(TensorList self, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
               TensorList max_exp_avg_sqs, TensorList steps, double lr, double beta1, double beta2,
               double eps, double weight_decay, bool decoupled, bool amsgrad, bool maximize) {
  Step step("_adam_step_", self, grads);
  const int m = step.state(exp_avgs), v = step.state(exp_avg_sqs);
  const int decay = step.number(), weight1 = step.number(), keep2 = step.number(),
            weight2 = step.number(), correction2 = step.number(), epsilon = step.number(),
            rate = step.number();
  if (decoupled && weight_decay != 0) step.op(Op::mul, kParam, kParam, decay);
  const int grad = prepared_gradient(step, maximize, !decoupled && weight_decay != 0, decay);
  step.op(Op::lerp, m, m, grad, weight1);
  step.op(Op::mul, v, v, keep2);
  step.addcmul(v, weight2, grad, grad);
  int variance = v;
  if (amsgrad) {
    variance = step.state(max_exp_avg_sqs);
    step.op(Op::maximum, variance, variance, v);
  }
  step.op(Op::sqrt, kT0, variance);
  step.op(Op::div, kT0, kT0, correction2);
  step.op(Op::add, kT0, kT0, epsilon);
  step.addcdiv(kParam, rate, m, kT0);
  if (!amsgrad)
    step.use_adam(decoupled && weight_decay != 0, !decoupled && weight_decay != 0, maximize);
  if (!step.serves() || !are_counts(self, steps)) return false;
  const Counts counts(steps);
  step.run(counts.numbers([&](double t) {
    return Numbers{decoupled ? 1 - lr * weight_decay : weight_decay,
                   1 - beta1,
                   beta2,
                   1 - beta2,
                   std::pow(1 - std::pow(beta2, t), 0.5),
                   eps,
                   -(lr / (1 - std::pow(beta1, t)))};
  }),
           counts);
  return true;
}

bool rmsprop_step(TensorList self, TensorList grads, TensorList square_avgs, TensorList grad_avgs,
                  TensorList momentum_buffers, TensorList steps, double lr, double alpha,
                  double eps, double weight_decay, double momentum, bool centered, bool maximize) {
  Step step("_rmsprop_step_", self, grads);
  const int v = step.state(square_avgs);
  const int decay = step.number(), keep = step.number(), weight = step.number(),
            epsilon = step.number(), rate = step.number(), factor = step.number(),
            one = step.number(), minus_one = step.number();
  const int grad = prepared_gradient(step, maximize, weight_decay != 0, decay);
  step.op(Op::mul, v, v, keep);
  step.addcmul(v, weight, grad, grad);
  if (centered) {
    const int mean = step.state(grad_avgs);
    step.op(Op::lerp, mean, mean, grad, weight);
    step.op(Op::mul, kT0, minus_one, mean);
    step.op(Op::mul, kT0, kT0, mean);
    step.op(Op::add, kT0, v, kT0);
    step.op(Op::sqrt, kT0, kT0);
  } else {
    step.op(Op::sqrt, kT0, v);
  }
  step.op(Op::add, kT0, kT0, epsilon);
  if (momentum > 0) {
    const int buffer = step.state(momentum_buffers);
    step.op(Op::mul, buffer, buffer, factor);
    step.addcdiv(buffer, one, grad, kT0);
    step.add_scaled(kParam, kParam, rate, buffer);
  } else {
    step.addcdiv(kParam, rate, grad, kT0);
  }
  if (!step.serves() || !are_counts(self, steps)) return false;
  const Counts counts(steps);
  step.run({Numbers{weight_decay, alpha, 1 - alpha, eps, -lr, momentum, 1, -1}},
           [](size_t) { return size_t{0}; });
  return true;
}

bool adagrad_step(TensorList self, TensorList grads, TensorList state_sums, TensorList steps,
                  double lr, double lr_decay, double weight_decay, double eps, bool maximize) {
  Step step("_adagrad_step_", self, grads);
  const int sum = step.state(state_sums);
  const int decay = step.number(), epsilon = step.number(), rate = step.number(),
            one = step.number();
  const int grad = prepared_gradient(step, maximize, weight_decay != 0, decay);
  step.addcmul(sum, one, grad, grad);
  step.op(Op::sqrt, kT0, sum);
  step.op(Op::add, kT0, kT0, epsilon);
  step.addcdiv(kParam, rate, grad, kT0);
  if (!step.serves() || !are_counts(self, steps)) return false;
  const Counts counts(steps);
  step.run(counts.numbers([&](double t) {
    return Numbers{weight_decay, eps, -(lr / (1 + (t - 1) * lr_decay)), 1};
  }),
           counts);
  return true;
}

}  // namespace kernels
}  // namespace lamina
