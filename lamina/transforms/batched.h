// Batched tensors: what a function sees of a sample while vmap runs it for all samples at once.
//
// A batched tensor stands for one slice of another one, its value, along a dimension that the
// function does not see. It has no memory, and its only key is FuncTorchBatched: operators reach a
// batching rule first, which calls them again on the values. What lies under the value (recording,
// tangents, batched tensors of outer levels) is reached by that call.
#pragma once

#include <string_view>
#include <vector>

#include "lamina/core/error.h"
#include "lamina/core/tensor.h"

namespace lamina::transforms {

struct Batched {
  Tensor value;
  int64_t dim;    // of the value: where the samples lie
  int64_t level;  // the call of vmap that it belongs to; larger ones are further inside
};

// Null for every other tensor.
const Batched* batched(const Tensor& t);
inline bool is_batched(const Tensor& t) { return t.keys().has(DispatchKey::FuncTorchBatched); }
// A slice of `value` along `dim`. `value` may be batched, at lower levels.
Tensor wrap(const Tensor& value, int64_t dim, int64_t level);
// `t` stands for a slice of another value from now on: its sizes have changed in place.
void set_value(const Tensor& t, const Tensor& value, int64_t dim);
// The level of `t`, or of the highest in a list; -1 where nothing is batched.
int64_t level_of(const Tensor& t);
int64_t level_of(TensorList list);
// The tensor under all levels.
const Tensor& innermost(const Tensor& t);

// Raised where an operator cannot do for all samples what it would do for one: a write of samples
// into a tensor that has none, or a number asked of a tensor that stands for many. Whoever knows
// how may go through the samples one by one.
class BatchingError : public Error {
 public:
  explicit BatchingError(std::string message, bool dynamic = false)
      : Error(ErrorKind::Runtime, std::move(message)), dynamic_(dynamic) {}
  // The size of a result depends on values: samples would give results of different sizes.
  bool dynamic() const { return dynamic_; }

 private:
  bool dynamic_;
};
[[noreturn]] void raise_item(std::string_view what);

// --- levels of this thread -----------------------------------------------------------------------
enum class Randomness : uint8_t { Error, Different, Same };

struct Level {
  int64_t number;
  int64_t size;  // samples
  Randomness randomness;
};
const std::vector<Level>& levels();
// A number that no earlier level of this thread had.
int64_t next_level_number();
int64_t enter_vmap(int64_t size, Randomness randomness);
void leave_vmap();  // the innermost
// Leaves the levels from `level` on for a while.
std::vector<Level> take_levels(int64_t level);
void put_levels(const std::vector<Level>& taken);
class Lowered {
 public:
  explicit Lowered(int64_t level) : kept_(take_levels(level)) {}
  ~Lowered() { put_levels(kept_); }
  Lowered(const Lowered&) = delete;
  Lowered& operator=(const Lowered&) = delete;

 private:
  std::vector<Level> kept_;
};

// --- in and out ----------------------------------------------------------------------------------
// The value of `t` at `level` with the samples in dimension 0; `t` must be batched there.
Tensor front(const Tensor& t, int64_t level);
// `t` without `level`, its samples as dimension 0; where it has none it is repeated `size` times.
// Levels above stay.
Tensor taken_out(const Tensor& t, int64_t level, int64_t size);
// Dimension `dim` of `t` become samples of `level`, under the levels above.
Tensor put_under(const Tensor& t, int64_t dim, int64_t level);
// What vmap gives back for a result: samples as dimension `dim`.
Tensor unbatched(const Tensor& t, int64_t dim, int64_t level, int64_t size);

// A tensor's levels, outermost first, and the samples of each.
std::vector<Level> levels_in(TensorList tensors);
// `t` with the samples of all of these levels as leading dimensions, and back.
Tensor flattened(const Tensor& t, const std::vector<Level>& levels);
Tensor rewrapped(const Tensor& flat, const std::vector<Level>& levels);

}  // namespace lamina::transforms
