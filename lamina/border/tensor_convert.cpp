// Methods that change type or device by name, and repr.
#include "lamina/border/override.h"
#include "lamina/border/tensor_object.h"
#include "lamina/ops/alias.h"
#include "lamina/ops/to.h"

namespace lamina::border {

namespace {

PyObject* converted(PyObject* self, std::optional<ScalarType> dtype, std::optional<Device> device,
                    bool copy, std::optional<MemoryFormat> format) {
  const Tensor& t = unwrap(self);
  const bool same = (!dtype || *dtype == t.dtype()) && (!device || *device == t.device());
  if (same && !copy && (!format || *format == MemoryFormat::Preserve)) return Py_NewRef(self);
  return wrap(without_gil(t.numel(), [&] {
    return ops::to(t, dtype, std::nullopt, device, std::nullopt, false, copy, format);
  }));
}

template <ScalarType type>
PyObject* to_type(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  LAMINA_BORDER_BEGIN
  static constexpr Param kParams[] = {{"input", P::Tensor},
                                      {"memory_format", P::MemoryFormat, kDefault | kNone}};
  static constexpr Signature kSignatures[] = {make_signature(
      kParams, "Tensor input, torch.memory_format memory_format = torch.preserve_format")};
  static constinit Parser parser("to", kSignatures);
  const ParsedArgs r(parser, self, args, nargs, names);
  return converted(self, type, std::nullopt, false, r.optional_memory_format(1));
  LAMINA_BORDER_END
}

constexpr Param kToDevice[] = {{"input", P::Tensor},
                               {"device", P::Device, kDefault | kNone},
                               {"dtype", P::ScalarType, kDefault | kNone},
                               {"non_blocking", P::Bool, kDefault | kNone},
                               {"copy", P::Bool, kDefault | kNone},
                               {"memory_format", P::MemoryFormat, kDefault | kNone | kKeyword}};
constexpr Param kToDtype[] = {{"input", P::Tensor},
                              {"dtype", P::ScalarType},
                              {"non_blocking", P::Bool, kDefault | kNone},
                              {"copy", P::Bool, kDefault | kNone},
                              {"memory_format", P::MemoryFormat, kDefault | kNone | kKeyword}};
constexpr Param kToOther[] = {{"input", P::Tensor},
                              {"other", P::Tensor},
                              {"non_blocking", P::Bool, kDefault | kNone},
                              {"copy", P::Bool, kDefault | kNone},
                              {"memory_format", P::MemoryFormat, kDefault | kNone | kKeyword}};
constexpr Signature kToSignatures[] = {
    make_signature(kToDevice,
                   "torch.device device = None, torch.dtype dtype = None, bool non_blocking = "
                   "False, bool copy = "
                   "False, *, torch.memory_format memory_format = None"),
    make_signature(kToDtype,
                   "torch.dtype dtype, bool non_blocking = False, bool copy = False, *, "
                   "torch.memory_format memory_format = None"),
    make_signature(kToOther,
                   "Tensor other, bool non_blocking = False, bool copy = False, *, "
                   "torch.memory_format memory_format = None")};
constinit Parser to_parser("to", kToSignatures);

// to(device), to(dtype), to(device, dtype), to(other): the tensor itself where nothing changes.
PyObject* to(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  LAMINA_BORDER_BEGIN
  if (nargs == 1 && !names && Py_TYPE(args[0]) == &dtype_type)
    return converted(self, to_dtype(args[0]), std::nullopt, false, std::nullopt);
  const ParsedArgs r(to_parser, self, args, nargs, names);
  switch (r.index()) {
    case 0: {
      const std::optional<Device> device = r.has(1) ? std::optional(r.device(1)) : std::nullopt;
      return converted(self, r.optional_scalar_type(2), device, r.boolean_or(4, false),
                       r.optional_memory_format(5));
    }
    case 1:
      return converted(self, r.scalar_type(1), std::nullopt, r.boolean_or(3, false),
                       r.optional_memory_format(4));
    default:
      return converted(self, r.tensor(1).dtype(), r.tensor(1).device(), r.boolean_or(3, false),
                       r.optional_memory_format(4));
  }
  LAMINA_BORDER_END
}

PyObject* cpu(PyObject* self, PyObject*) {
  LAMINA_BORDER_BEGIN
  return converted(self, std::nullopt, kCpu, false, std::nullopt);
  LAMINA_BORDER_END
}
PyObject* cuda(PyObject*, PyObject* const*, Py_ssize_t, PyObject*) {
  LAMINA_BORDER_BEGIN
  raise_python(
      PyExc_AssertionError,
      "cuda(): Torch not compiled with CUDA enabled (Lamina has no memory on that device)");
  LAMINA_BORDER_END
}
PyObject* type_as(PyObject* self, PyObject* other) {
  LAMINA_BORDER_BEGIN
  if (!is_tensor(other)) raise_type("type_as(): argument 'other' (position 1) must be Tensor");
  return converted(self, unwrap(other).dtype(), std::nullopt, false, std::nullopt);
  LAMINA_BORDER_END
}

// lamina.Tensor.make_subclass(cls, tensor): the tensor's values as an object of a subclass.
PyObject* make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  LAMINA_BORDER_BEGIN
  static const char* names[] = {"cls", "data", "require_grad", nullptr};
  PyObject *cls, *data;
  int require_grad = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|p:_make_subclass", const_cast<char**>(names),
                                   &PyType_Type, &cls, &data, &require_grad))
    return nullptr;
  if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), tensor_type))
    raise_type("_make_subclass: cls must be a subclass of Tensor");
  if (!is_tensor(data)) raise_type("_make_subclass: data must be a Tensor");
  Ref detached = call_method(generated_method("detach"), data);
  const Tensor value = unwrap(detached.get());
  // The fresh object gives way to the one of the subclass.
  value.impl()->set_pyobject(nullptr, false);
  Ref self = owned(wrap_as(reinterpret_cast<PyTypeObject*>(cls), value));
  if (require_grad) owned(PyObject_CallMethod(self.get(), "requires_grad_", nullptr));
  return self.leak();
  LAMINA_BORDER_END
}
PyObject* as_subclass(PyObject* self, PyObject* cls) {
  LAMINA_BORDER_BEGIN
  if (!PyType_Check(cls) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(cls), tensor_type))
    raise_type("as_subclass: cls must be a subclass of Tensor");
  return wrap_as(reinterpret_cast<PyTypeObject*>(cls), ops::alias(unwrap(self)));
  LAMINA_BORDER_END
}

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

}  // namespace

PyObject* tensor_repr(PyObject* self) {
  LAMINA_BORDER_BEGIN
  static PyObject* function = nullptr;
  if (!function) {
    Ref module = owned(PyImport_ImportModule("lamina._tensor_str"));
    function = checked(PyObject_GetAttrString(module.get(), "tensor_repr"));
  }
  if (maybe_overridden(self)) {
    const Override o = offer_method("__repr__", {self});
    if (o.taken) return o.result;
  }
  return PyObject_CallOneArg(function, self);
  LAMINA_BORDER_END
}

PyMethodDef tensor_convert_methods[] = {
    {"to", fast(overridable_fast<"to", to>), kFast,
     "Converted to a type, device or memory format."},
    {"float", fast(overridable_fast<"float", to_type<ScalarType::Float32>>), kFast, "To float32."},
    {"double", fast(overridable_fast<"double", to_type<ScalarType::Float64>>), kFast,
     "To float64."},
    {"half", fast(overridable_fast<"half", to_type<ScalarType::Float16>>), kFast, "To float16."},
    {"bfloat16", fast(overridable_fast<"bfloat16", to_type<ScalarType::BFloat16>>), kFast,
     "To bfloat16."},
    {"cfloat", fast(overridable_fast<"cfloat", to_type<ScalarType::Complex64>>), kFast,
     "To complex64."},
    {"cdouble", fast(overridable_fast<"cdouble", to_type<ScalarType::Complex128>>), kFast,
     "To complex128."},
    {"long", fast(overridable_fast<"long", to_type<ScalarType::Int64>>), kFast, "To int64."},
    {"int", fast(overridable_fast<"int", to_type<ScalarType::Int32>>), kFast, "To int32."},
    {"short", fast(overridable_fast<"short", to_type<ScalarType::Int16>>), kFast, "To int16."},
    {"char", fast(overridable_fast<"char", to_type<ScalarType::Int8>>), kFast, "To int8."},
    {"byte", fast(overridable_fast<"byte", to_type<ScalarType::UInt8>>), kFast, "To uint8."},
    {"bool", fast(overridable_fast<"bool", to_type<ScalarType::Bool>>), kFast, "To bool."},
    {"cpu", overridable<"cpu", cpu>, METH_NOARGS, "To the CPU."},
    {"cuda", fast(overridable_fast<"cuda", cuda>), METH_FASTCALL | METH_KEYWORDS, "To a GPU."},
    {"type_as", overridable<"type_as", type_as>, METH_O, "To the type of another tensor."},
    {"as_subclass", as_subclass, METH_O, "The same tensor as an object of a subclass."},
    {"_make_subclass", fast(make_subclass), METH_VARARGS | METH_KEYWORDS | METH_STATIC, nullptr},
    {}};

}  // namespace lamina::border
