// Operators of Python: a + b, 2 ** a, a @ b, a < b, bool(a).
#include <cmath>
#include <string>

#include "lamina/border/override.h"
#include "lamina/border/tensor_object.h"
#include "lamina/core/float_types.h"
#include "lamina/kernels/result.h"
#include "lamina/ops/add.h"
#include "lamina/ops/div.h"
#include "lamina/ops/matmul.h"
#include "lamina/ops/mul.h"
#include "lamina/ops/sub.h"
#include "lamina/transforms/batched.h"

namespace lamina::border {

namespace {

// Which operator of the op list an operator of Python is.
enum Slot {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDivide,
  kRemainder,
  kPow,
  kMatmul,
  kAnd,
  kOr,
  kXor,
  kLeftShift,
  kRightShift,
  kAddInplace,
  kSubInplace,
  kMulInplace,
  kDivInplace,
  kFloorDivideInplace,
  kRemainderInplace,
  kPowInplace,
  kAndInplace,
  kOrInplace,
  kXorInplace,
  kLeftShiftInplace,
  kRightShiftInplace,
  kLess,
  kLessEqual,
  kEqual,
  kNotEqual,
  kGreater,
  kGreaterEqual,
  kNegate,
  kAbsolute,
  kInvert,
  kRsub,
  kUnbind,
  kAny,
  kNumSlots
};
constexpr const char* kSlotNames[kNumSlots] = {"add",
                                               "sub",
                                               "mul",
                                               "div",
                                               "floor_divide",
                                               "remainder",
                                               "pow",
                                               "matmul",
                                               "bitwise_and",
                                               "bitwise_or",
                                               "bitwise_xor",
                                               "bitwise_left_shift",
                                               "bitwise_right_shift",
                                               "add_",
                                               "sub_",
                                               "mul_",
                                               "div_",
                                               "floor_divide_",
                                               "remainder_",
                                               "pow_",
                                               "bitwise_and_",
                                               "bitwise_or_",
                                               "bitwise_xor_",
                                               "bitwise_left_shift_",
                                               "bitwise_right_shift_",
                                               "lt",
                                               "le",
                                               "eq",
                                               "ne",
                                               "gt",
                                               "ge",
                                               "neg",
                                               "abs",
                                               "bitwise_not",
                                               "rsub",
                                               "unbind",
                                               "any"};
FastMethod slot_methods[kNumSlots];

bool is_operand(PyObject* o) { return is_tensor(o) || is_number(o); }

// A TypeError of the operator means that the other operand's type may know better.
PyObject* or_not_implemented(PyObject* result) {
  if (!result && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    Py_RETURN_NOTIMPLEMENTED;
  }
  return result;
}

bool commutes(int slot) {
  return slot == kAdd || slot == kMul || slot == kAnd || slot == kOr || slot == kXor;
}

// The commonest operators of two plain tensors need no argument matching.
template <Slot slot>
constexpr bool has_direct_call =
    slot == kAdd || slot == kSub || slot == kMul || slot == kDiv || slot == kMatmul;

template <Slot slot>
Tensor direct_call(const Tensor& a, const Tensor& b) {
  if constexpr (slot == kAdd) return ops::add(a, b);
  if constexpr (slot == kSub) return ops::sub(a, b);
  if constexpr (slot == kMul) return ops::mul(a, b);
  if constexpr (slot == kDiv) return ops::div(a, b);
  if constexpr (slot == kMatmul) return ops::matmul(a, b);
}

// The other operand is neither a tensor nor a number; its type may take the call over.
PyObject* foreign_operand(Slot slot, PyObject* a, PyObject* b) {
  if (has_override(b)) {
    const Override o = offer_method(kSlotNames[slot], {a, b});
    if (o.taken) return or_not_implemented(o.result);
  }
  Py_RETURN_NOTIMPLEMENTED;
}

// What 1 - x is called where a subclass sees it.
const char* reflected_name(Slot slot) {
  switch (slot) {
    case kSub:
      return "__rsub__";
    case kDiv:
      return "__rdiv__";
    case kPow:
      return "__rpow__";
    case kFloorDivide:
      return "__rfloordiv__";
    case kRemainder:
      return "__rmod__";
    default:
      return kSlotNames[slot];
  }
}

template <Slot slot>
PyObject* binary(PyObject* a, PyObject* b) {
  if constexpr (has_direct_call<slot>) {
    if (is_exact_tensor(a) && is_exact_tensor(b) && entered_function_modes == 0) [[likely]] {
      LAMINA_BORDER_BEGIN
      const Tensor &x = unwrap(a), &y = unwrap(b);
      return wrap(without_gil(x.numel() + y.numel(), [&] { return direct_call<slot>(x, y); }));
      LAMINA_BORDER_END
    }
  }
  if (is_tensor(a)) [[likely]] {
    if (!is_tensor(b) && (slot == kMatmul || !is_number(b))) return foreign_operand(slot, a, b);
    return slot_methods[slot](a, &b, 1, nullptr);
  }
  LAMINA_BORDER_BEGIN
  if (slot == kMatmul || !is_operand(a)) Py_RETURN_NOTIMPLEMENTED;
  if (maybe_overridden(b)) [[unlikely]] {
    const Override o = offer_method(reflected_name(slot), {b, a});
    if (o.taken) return o.result;
  }
  if (commutes(slot)) return slot_methods[slot](b, &a, 1, nullptr);
  if (slot == kSub && slot_methods[kRsub] != generated_method("")) {
    return slot_methods[kRsub](b, &a, 1, nullptr);
  }
  // The number as a tensor of the type that it takes beside b.
  const Scalar v = to_scalar(a);
  Ref number = owned(wrap(make_scalar_tensor(v, number_type_beside(v, unwrap(b).dtype()))));
  return slot_methods[slot](number.get(), &b, 1, nullptr);
  LAMINA_BORDER_END
}

template <Slot slot>
PyObject* inplace(PyObject* a, PyObject* b) {
  if (!is_tensor(a) || !is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
  return slot_methods[slot](a, &b, 1, nullptr);
}

template <Slot slot>
PyObject* unary(PyObject* a) {
  return slot_methods[slot](a, nullptr, 0, nullptr);
}

PyObject* invert(PyObject* a) {
  if (const ScalarType t = unwrap(a).dtype(); is_exact_tensor(a) && !is_integral(t, true)) {
    PyErr_SetString(PyExc_TypeError,
                    "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    return nullptr;
  }
  return unary<kInvert>(a);
}

PyObject* positive(PyObject* a) {
  if (is_bool(unwrap(a).dtype())) {
    PyErr_SetString(PyExc_RuntimeError, "The `+` operator, on a bool tensor is not supported.");
    return nullptr;
  }
  return Py_NewRef(a);
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary<kPow>(a, b);
}
PyObject* inplace_power(PyObject* a, PyObject* b, PyObject*) { return inplace<kPowInplace>(a, b); }

int truth(PyObject* self) {
  LAMINA_BORDER_BEGIN
  if (maybe_overridden(self)) [[unlikely]] {
    const Override o = offer_method("__bool__", {self});
    if (o.taken) {
      Ref result = owned(o.result);
      return PyObject_IsTrue(result.get());
    }
  }
  const Tensor& t = unwrap(self);
  if (t.numel() != 1) {
    raise_runtime(t.numel() == 0 ? "Boolean value of Tensor with no values is ambiguous"
                                 : "Boolean value of Tensor with more than one value is ambiguous");
  }
  if (transforms::is_batched(t))
    transforms::raise_item("attempting to use a Tensor in some data-dependent control flow");
  return item_of(t).to_bool();
  LAMINA_BORDER_END_WITH(-1)
}

void check_one_element(PyObject* self) {
  if (unwrap(self).numel() != 1)
    raise_value("only one element tensors can be converted to Python scalars");
}

PyObject* to_python_int(PyObject* self) {
  LAMINA_BORDER_BEGIN
  check_one_element(self);
  const Scalar v = item_of(unwrap(self));
  if (v.is_floating()) return PyLong_FromDouble(v.to_double());
  if (v.is_complex()) {
    if (v.to_complex().imag() != 0)
      raise_runtime("value cannot be converted to type int64_t without overflow");
    return PyLong_FromDouble(v.to_double());
  }
  if (v.is_bool()) return PyLong_FromLong(v.to_bool());
  return wrap(v);
  LAMINA_BORDER_END
}
PyObject* to_python_float(PyObject* self) {
  LAMINA_BORDER_BEGIN
  check_one_element(self);
  const Scalar v = item_of(unwrap(self));
  if (v.is_complex() && v.to_complex().imag() != 0)
    raise_runtime("value cannot be converted to type double without overflow");
  return PyFloat_FromDouble(v.to_double());
  LAMINA_BORDER_END
}
PyObject* to_python_index(PyObject* self) {
  LAMINA_BORDER_BEGIN
  const Tensor& t = unwrap(self);
  if (t.numel() != 1 || !is_integral(t.dtype(), true))
    raise_type("only integer tensors of a single element can be converted to an index");
  const Scalar v = item_of(t);
  return v.is_bool() ? PyLong_FromLong(v.to_bool()) : wrap(v);
  LAMINA_BORDER_END
}

PyObject* to_int_slot(PyObject* self, PyObject*) { return to_python_int(self); }
PyObject* to_float_slot(PyObject* self, PyObject*) { return to_python_float(self); }
PyObject* to_index_slot(PyObject* self, PyObject*) { return to_python_index(self); }

}  // namespace

void find_slot_methods() {
  for (int i = 0; i < kNumSlots; ++i) slot_methods[i] = generated_method(kSlotNames[i]);
  // The op list may know one name only of an operator that has two.
  const FastMethod none = generated_method("");
  if (slot_methods[kDiv] == none) slot_methods[kDiv] = generated_method("div");
  if (slot_methods[kDivInplace] == none) slot_methods[kDivInplace] = generated_method("div_");
}

PyNumberMethods tensor_number_slots = [] {
  PyNumberMethods n{};
  n.nb_add = binary<kAdd>;
  n.nb_subtract = binary<kSub>;
  n.nb_multiply = binary<kMul>;
  n.nb_true_divide = binary<kDiv>;
  n.nb_floor_divide = binary<kFloorDivide>;
  n.nb_remainder = binary<kRemainder>;
  n.nb_power = power;
  n.nb_matrix_multiply = binary<kMatmul>;
  n.nb_and = binary<kAnd>;
  n.nb_or = binary<kOr>;
  n.nb_xor = binary<kXor>;
  n.nb_lshift = binary<kLeftShift>;
  n.nb_rshift = binary<kRightShift>;
  n.nb_inplace_add = inplace<kAddInplace>;
  n.nb_inplace_subtract = inplace<kSubInplace>;
  n.nb_inplace_multiply = inplace<kMulInplace>;
  n.nb_inplace_true_divide = inplace<kDivInplace>;
  n.nb_inplace_floor_divide = inplace<kFloorDivideInplace>;
  n.nb_inplace_remainder = inplace<kRemainderInplace>;
  n.nb_inplace_power = inplace_power;
  n.nb_inplace_and = inplace<kAndInplace>;
  n.nb_inplace_or = inplace<kOrInplace>;
  n.nb_inplace_xor = inplace<kXorInplace>;
  n.nb_inplace_lshift = inplace<kLeftShiftInplace>;
  n.nb_inplace_rshift = inplace<kRightShiftInplace>;
  n.nb_negative = unary<kNegate>;
  n.nb_positive = positive;
  n.nb_absolute = unary<kAbsolute>;
  n.nb_invert = invert;
  n.nb_bool = truth;
  n.nb_int = [](PyObject* self) { return overridable<"__int__", to_int_slot>(self, nullptr); };
  n.nb_float = [](PyObject* self) {
    return overridable<"__float__", to_float_slot>(self, nullptr);
  };
  n.nb_index = [](PyObject* self) {
    return overridable<"__index__", to_index_slot>(self, nullptr);
  };
  return n;
}();

namespace {
// The double nearest to a whole number that 64 bits do not hold, as a new float; null for others.
// It is beyond every integer, and for a floating tensor as good as the number itself.
PyObject* number_beyond_64_bits(PyObject* number) {
  int overflow = 0;
  PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow == 0) return nullptr;
  if (overflow > 0) {
    PyLong_AsUnsignedLongLong(number);
    if (!PyErr_Occurred()) return nullptr;
    PyErr_Clear();
  }
  double nearest = PyLong_AsDouble(number);
  if (nearest == -1.0 && PyErr_Occurred()) {
    PyErr_Clear();
    nearest = overflow > 0 ? HUGE_VAL : -HUGE_VAL;
  }
  // The next numbers below the least integer round to it, and are less all the same.
  if (nearest == -0x1p63) nearest = std::nextafter(nearest, -HUGE_VAL);
  return PyFloat_FromDouble(nearest);
}
}  // namespace

PyObject* tensor_compare(PyObject* a, PyObject* b, int op) {
  static constexpr Slot kSlots[] = {kLess, kLessEqual, kEqual, kNotEqual, kGreater, kGreaterEqual};
  if (!is_operand(b)) return foreign_operand(kSlots[op], a, b);
  if (PyObject* beyond = PyLong_CheckExact(b) ? number_beyond_64_bits(b) : nullptr) {
    PyObject* result = slot_methods[kSlots[op]](a, &beyond, 1, nullptr);
    Py_DECREF(beyond);
    return result;
  }
  return or_not_implemented(slot_methods[kSlots[op]](a, &b, 1, nullptr));
}

Py_ssize_t tensor_length(PyObject* self) {
  if (maybe_overridden(self)) [[unlikely]] {
    const Override o = offer_method("__len__", {self});
    if (o.taken) {
      if (!o.result) return -1;
      const Py_ssize_t n = PyNumber_AsSsize_t(o.result, PyExc_OverflowError);
      Py_DECREF(o.result);
      return n;
    }
  }
  const Tensor& t = unwrap(self);
  if (t.dim() == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of a 0-d tensor");
    return -1;
  }
  return static_cast<Py_ssize_t>(t.sizes()[0]);
}

PyObject* tensor_iterate(PyObject* self) {
  LAMINA_BORDER_BEGIN
  if (unwrap(self).dim() == 0) raise_type("iteration over a 0-d tensor");
  Ref rows = call_method(slot_methods[kUnbind], self);
  return PyObject_GetIter(rows.get());
  LAMINA_BORDER_END
}

int tensor_contains(PyObject* self, PyObject* value) {
  LAMINA_BORDER_BEGIN
  if (maybe_overridden(self)) [[unlikely]] {
    const Override o = offer_method("__contains__", {self, value});
    if (o.taken) {
      Ref result = owned(o.result);
      return PyObject_IsTrue(result.get());
    }
  }
  if (!is_operand(value))
    raise_runtime(
        std::string("Tensor.__contains__ only supports Tensor or scalar, but you passed in a ") +
        Py_TYPE(value)->tp_name + ".");
  Ref equal = call_method(slot_methods[kEqual], self, value);
  Ref any = call_method(slot_methods[kAny], equal.get());
  return item_of(unwrap(any.get())).to_bool();
  LAMINA_BORDER_END_WITH(-1)
}

Tensor make_scalar_tensor(Scalar value, ScalarType dtype) {
  Tensor t = empty_contiguous({}, dtype, kCpu);
  visit(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* p = static_cast<T*>(t.data());
    switch (value.kind()) {
      case Scalar::Kind::Complex:
        *p = convert_to<T>(value.to_complex());
        break;
      case Scalar::Kind::Float:
        *p = convert_to<T>(value.to_double());
        break;
      case Scalar::Kind::UInt:
        *p = convert_to<T>(static_cast<uint64_t>(value.to_int()));
        break;
      default:
        *p = convert_to<T>(value.to_int());
    }
  });
  return t;
}

ScalarType number_type_beside(Scalar value, ScalarType t) {
  const auto category = [](ScalarType s) {
    return is_complex(s) ? 3 : is_floating(s) ? 2 : is_integral(s) ? 1 : 0;
  };
  const ScalarType own = value.default_type(default_dtype());
  if (category(own) <= category(t)) return t;
  return is_complex(own) && is_floating(t) ? to_complex(t) : own;
}

}  // namespace lamina::border
