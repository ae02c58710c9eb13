// Type promotion: which element type a computation on several operands has.
#pragma once

#include <span>

#include "lamina/core/scalar.h"
#include "lamina/core/tensor.h"

namespace lamina {

// The smallest type that both convert to. Raises Runtime where there is none (uint64 with a signed
// type, float8).
ScalarType promote_types(ScalarType a, ScalarType b);
// Whether a result of type `from` may be written to an output of type `to`: complex not to real,
// floating not to integral, nothing but bool to bool.
bool can_cast(ScalarType from, ScalarType to);

// Whether a number can be written to a tensor of this type: whole numbers that an integer type does
// not hold cannot, nor finite ones that float32 does not reach. As in the peer, a negative whole
// number wraps in an unsigned type, and float16 takes what is too large as infinite.
bool number_fits(const Scalar& value, ScalarType type);

// Operands count in three groups: tensors with dimensions, tensors without, and numbers. A later
// group matters only when its category (bool < integral < floating < complex) is higher than what
// the earlier groups give.
class ResultType {
 public:
  void add(const Tensor& t) { add_type(t.dtype(), t.dim() == 0); }
  void add_type(ScalarType t, bool zero_dim) {
    ScalarType& slot = zero_dim ? zero_ : dimensioned_;
    bool& has = zero_dim ? has_zero_ : has_dimensioned_;
    slot = has ? (slot == t ? t : promote_types(slot, t)) : t;
    has = true;
  }
  void add(const Scalar& s);
  ScalarType get() const;

 private:
  ScalarType dimensioned_ = ScalarType::Bool, zero_ = ScalarType::Bool, number_ = ScalarType::Bool;
  bool has_dimensioned_ = false, has_zero_ = false, has_number_ = false;
};

}  // namespace lamina
