// Methods of a tensor that are no operators: sizes, strides, items.
#include <string>

#include "lamina/border/override.h"
#include "lamina/border/tensor_object.h"
#include "lamina/transforms/batched.h"

namespace lamina::border {

namespace {

constexpr Param kDim[] = {{"input", P::Tensor}, {"dim", P::Int, kDefault | kNone}};
constexpr Signature kSizeSignatures[] = {make_signature(kDim, "Tensor input, int dim = None")};
constinit Parser size_parser("size", kSizeSignatures);
constinit Parser stride_parser("stride", kSizeSignatures);

// size(), size(1): all, or one wrapped.
PyObject* size(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  LAMINA_BORDER_BEGIN
  const Tensor& t = unwrap(self);
  if (nargs == 0 && !names) return wrap_size(t.sizes());
  const ParsedArgs r(size_parser, self, args, nargs, names);
  return r.has(1) ? wrap(t.size(r.integer(1))) : wrap_size(t.sizes());
  LAMINA_BORDER_END
}
PyObject* stride(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  LAMINA_BORDER_BEGIN
  const Tensor& t = unwrap(self);
  if (nargs == 0 && !names) return wrap_ints(t.strides());
  const ParsedArgs r(stride_parser, self, args, nargs, names);
  return r.has(1) ? wrap(t.stride(r.integer(1))) : wrap_ints(t.strides());
  LAMINA_BORDER_END
}

void check_has_bytes(const Tensor& t, const char* what) {
  LAMINA_CHECK(!transforms::is_batched(t), what,
               ": inside vmap a tensor stands for all samples and has no bytes of its own");
}

PyObject* storage_offset(PyObject* self, PyObject*) {
  return PyLong_FromLongLong(unwrap(self).storage_offset());
}
PyObject* dim(PyObject* self, PyObject*) { return PyLong_FromLongLong(unwrap(self).dim()); }
PyObject* numel(PyObject* self, PyObject*) { return PyLong_FromLongLong(unwrap(self).numel()); }
PyObject* element_size(PyObject* self, PyObject*) {
  return PyLong_FromSize_t(item_size(unwrap(self).dtype()));
}
PyObject* data_ptr(PyObject* self, PyObject*) {
  LAMINA_BORDER_BEGIN
  check_has_bytes(unwrap(self), "data_ptr");
  return PyLong_FromVoidPtr(unwrap(self).numel() == 0 ? nullptr : unwrap(self).data());
  LAMINA_BORDER_END
}
PyObject* item(PyObject* self, PyObject*) {
  LAMINA_BORDER_BEGIN
  return wrap(item_of(unwrap(self)));
  LAMINA_BORDER_END
}
PyObject* untyped_storage(PyObject* self, PyObject*) {
  LAMINA_BORDER_BEGIN
  check_has_bytes(unwrap(self), "untyped_storage");
  return wrap_storage(IntrusivePtr<Storage>::share(unwrap(self).storage()));
  LAMINA_BORDER_END
}

constexpr Param kContiguous[] = {{"input", P::Tensor},
                                 {"memory_format", P::MemoryFormat, kDefault | kKeyword}};
constexpr Signature kContiguousSignatures[] = {make_signature(
    kContiguous, "Tensor input, *, torch.memory_format memory_format = torch.contiguous_format")};
constinit Parser contiguous_parser("is_contiguous", kContiguousSignatures);

PyObject* is_contiguous(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* names) {
  LAMINA_BORDER_BEGIN
  const ParsedArgs r(contiguous_parser, self, args, nargs, names);
  const MemoryFormat format = r.memory_format_or(1, MemoryFormat::Contiguous);
  if (format == MemoryFormat::Preserve)
    raise_runtime("preserve memory format is unsupported by the contiguous operator");
  return wrap(unwrap(self).is_contiguous(format));
  LAMINA_BORDER_END
}

// One dimension of the nested list, from `p` on.
PyObject* to_list(const Tensor& t, const char* p, int64_t dim) {
  const int64_t n = t.sizes()[dim];
  const int64_t step = t.strides()[dim] * static_cast<int64_t>(item_size(t.dtype()));
  Ref list = owned(PyList_New(n));
  for (int64_t i = 0; i < n; ++i) {
    PyObject* item = dim + 1 == t.dim() ? wrap(load_element(p + i * step, t.dtype()))
                                        : to_list(t, p + i * step, dim + 1);
    PyList_SET_ITEM(list.get(), i, checked(item));
  }
  return list.leak();
}
PyObject* tolist(PyObject* self, PyObject*) {
  LAMINA_BORDER_BEGIN
  Tensor t = unwrap(self);
  if (t.dim() == 0) return wrap(item_of(t));
  LAMINA_CHECK_IMPLEMENTED(!t.is_meta(), "tolist: a tensor on the meta device has no values");
  if (transforms::is_batched(t)) transforms::raise_item("calling .tolist() on a Tensor");
  LAMINA_CHECK(t.data() || t.numel() == 0, "tolist: the tensor has no memory");
  if (t.keys().has(DispatchKey::Conjugate) || t.keys().has(DispatchKey::Negative)) {
    Ref plain = call_method(generated_method("clone"), self);
    t = unwrap(plain.get());
  }
  return to_list(t, static_cast<const char*>(t.data()), 0);
  LAMINA_BORDER_END
}

PyObject* is_floating_point_(PyObject* self, PyObject*) {
  return wrap(is_floating(unwrap(self).dtype()));
}
PyObject* is_complex_(PyObject* self, PyObject*) { return wrap(is_complex(unwrap(self).dtype())); }
PyObject* is_signed_(PyObject* self, PyObject*) {
  const ScalarType t = unwrap(self).dtype();
  return wrap(!is_bool(t) && !is_unsigned(t));
}
PyObject* is_conj(PyObject* self, PyObject*) {
  return wrap(unwrap(self).keys().has(DispatchKey::Conjugate));
}
PyObject* is_neg(PyObject* self, PyObject*) {
  return wrap(unwrap(self).keys().has(DispatchKey::Negative));
}
PyObject* is_inference(PyObject* self, PyObject*) {
  return wrap(unwrap(self).impl()->is_inference());
}
PyObject* return_false(PyObject*, PyObject*) { Py_RETURN_FALSE; }
PyObject* get_device(PyObject* self, PyObject*) {
  const Device d = unwrap(self).device();
  return PyLong_FromLong(d.is_cpu() ? -1 : d.index);
}
PyObject* is_set_to(PyObject* self, PyObject* other) {
  LAMINA_BORDER_BEGIN
  if (!is_tensor(other)) raise_type("is_set_to(): argument 'tensor' (position 1) must be Tensor");
  const Tensor &a = unwrap(self), &b = unwrap(other);
  return wrap(a.storage() == b.storage() && a.storage_offset() == b.storage_offset() &&
              a.sizes() == b.sizes() && a.strides() == b.strides());
  LAMINA_BORDER_END
}
PyObject* is_same_size(PyObject* self, PyObject* other) {
  LAMINA_BORDER_BEGIN
  if (!is_tensor(other)) raise_type("is_same_size(): argument 'other' (position 1) must be Tensor");
  return wrap(unwrap(self).sizes() == unwrap(other).sizes());
  LAMINA_BORDER_END
}

PyObject* format(PyObject* self, PyObject* spec) {
  LAMINA_BORDER_BEGIN
  if (!PyUnicode_Check(spec))
    raise_type(std::string("__format__() argument must be str, not ") + Py_TYPE(spec)->tp_name);
  if (unwrap(self).dim() == 0 && !unwrap(self).is_meta() && Py_TYPE(self) == tensor_type &&
      !transforms::is_batched(unwrap(self))) {
    Ref number = owned(wrap(item_of(unwrap(self))));
    return PyObject_Format(number.get(), spec);
  }
  Ref text = owned(PyObject_Str(self));
  return PyObject_Format(text.get(), spec);
  LAMINA_BORDER_END
}
PyObject* as_complex(PyObject* self, PyObject*) {
  LAMINA_BORDER_BEGIN
  const std::complex<double> c = item_of(unwrap(self)).to_complex();
  return PyComplex_FromDoubles(c.real(), c.imag());
  LAMINA_BORDER_END
}

// As a method too: a call of the slot's wrapper, x.__setitem__(i, v), would cost more than the
// write.
PyObject* set_item(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  LAMINA_BORDER_BEGIN
  if (nargs != 2)
    raise_type("__setitem__() takes 2 positional arguments but " + std::to_string(nargs) +
               " were given");
  if (tensor_assign_subscript(self, args[0], args[1]) < 0) return nullptr;
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}

}  // namespace

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;
PyMethodDef tensor_methods[] = {
    {"size", fast(overridable_fast<"size", size>), kFast, "Sizes, or one of them."},
    {"stride", fast(overridable_fast<"stride", stride>), kFast,
     "Strides in elements, or one of them."},
    {"storage_offset", overridable<"storage_offset", storage_offset>, METH_NOARGS,
     "First element's place in the storage."},
    {"dim", overridable<"dim", dim>, METH_NOARGS, "Number of dimensions."},
    {"ndimension", overridable<"ndimension", dim>, METH_NOARGS, "Number of dimensions."},
    {"numel", overridable<"numel", numel>, METH_NOARGS, "Number of elements."},
    {"nelement", overridable<"nelement", numel>, METH_NOARGS, "Number of elements."},
    {"element_size", overridable<"element_size", element_size>, METH_NOARGS,
     "Bytes of one element."},
    {"data_ptr", overridable<"data_ptr", data_ptr>, METH_NOARGS, "Address of the first element."},
    {"item", overridable<"item", item>, METH_NOARGS, "The only element as a Python number."},
    {"tolist", overridable<"tolist", tolist>, METH_NOARGS, "Nested lists of Python numbers."},
    {"untyped_storage", overridable<"untyped_storage", untyped_storage>, METH_NOARGS, "The bytes."},
    {"is_contiguous", fast(is_contiguous), kFast, "Is this the order of memory?"},
    {"is_floating_point", overridable<"is_floating_point", is_floating_point_>, METH_NOARGS,
     "Whether the type is a real floating-point one."},
    {"is_complex", overridable<"is_complex", is_complex_>, METH_NOARGS,
     "Whether the type is complex."},
    {"is_signed", overridable<"is_signed", is_signed_>, METH_NOARGS,
     "Whether the type has a sign."},
    {"is_conj", overridable<"is_conj", is_conj>, METH_NOARGS,
     "Whether the tensor is marked as conjugate, to be computed when it is read."},
    {"is_neg", overridable<"is_neg", is_neg>, METH_NOARGS,
     "Whether the tensor is marked as negative, to be computed when it is read."},
    {"is_inference", overridable<"is_inference", is_inference>, METH_NOARGS,
     "Whether it was made in inference mode."},
    {"is_pinned", overridable<"is_pinned", return_false>, METH_NOARGS,
     "False: memory is never pinned."},
    {"is_shared", overridable<"is_shared", return_false>, METH_NOARGS,
     "Whether other processes may see the memory."},
    {"has_names", overridable<"has_names", return_false>, METH_NOARGS,
     "False: dimensions have no names."},
    {"_is_zerotensor", overridable<"_is_zerotensor", return_false>, METH_NOARGS, nullptr},
    {"get_device", overridable<"get_device", get_device>, METH_NOARGS,
     "Index of the device; -1 for the CPU."},
    {"is_set_to", overridable<"is_set_to", is_set_to>, METH_O,
     "Whether both are the same window of the same storage."},
    {"is_same_size", overridable<"is_same_size", is_same_size>, METH_O,
     "Whether both have the same sizes."},
    {"__format__", overridable<"__format__", format>, METH_O, nullptr},
    {"__setitem__", fast(set_item), METH_FASTCALL, nullptr},
    {"__complex__", overridable<"__complex__", as_complex>, METH_NOARGS, nullptr},
    {}};

}  // namespace lamina::border
