// Runs a pointwise operator: promotion, broadcasting, result or target, then the tile machine. One
// function serves every pointwise operator; what differs is in a constant table that opgen writes.
#pragma once

#include <cstdint>

#include "lamina/core/scalar.h"
#include "lamina/core/tensor.h"
#include "lamina/tile/tile.h"

namespace lamina::kernels {

enum class Promotion : uint8_t {
  Default,  // result has the common type
  Float,    // integral operands are computed in the default floating type
  Compare,  // computed in the common type, result is bool
  Keep,     // result has the first operand's type
  Real,     // computed in the common type; complex gives its real type
};

// Categories of element types.
enum Category : uint8_t { kBool = 1, kInteger = 2, kFloating = 4, kComplex = 8 };

struct Pointwise {
  const char* name;
  const tile::Program* program;
  const tile::Program* unit_program;  // used when scalar `unit_scalar` is 1
  int8_t unit_scalar;                 // -1: none
  bool unit_is_alpha;                 // must fit the operands' kind of number
  uint8_t num_inputs;
  uint8_t num_scalars;
  uint8_t promoting_scalars;  // bit i: scalar i takes part in promotion
  Promotion promotion;
  tile::RegClass output_class;
  bool has_direct;  // the program is one operation over inputs, then scalars, in order
  tile::Op direct;
  bool has_unit_direct;  // so is unit_program
  tile::Op unit_direct;
  bool saturates;      // numbers outside of an integer type count as its bounds
  uint8_t categories;  // in which the operator computes
};

// `inputs` has num_inputs pointers, `scalars` num_scalars numbers.
Tensor pointwise(const Pointwise& op, const Tensor* const* inputs, const Scalar* scalars);
void pointwise_out(const Pointwise& op, const Tensor& out, const Tensor* const* inputs,
                   const Scalar* scalars);
// The first input is the target.
void pointwise_inplace(const Pointwise& op, const Tensor* const* inputs, const Scalar* scalars);

// Comparisons of a uint64 tensor with one of signed integers, which have no common type.
bool compares_mixed_signs(const Pointwise& op, const Tensor* const* inputs);
Tensor compare_mixed_signs(const Pointwise& op, const Tensor* const* inputs);

}  // namespace lamina::kernels
