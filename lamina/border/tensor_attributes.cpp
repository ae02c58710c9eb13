// Attributes of a tensor that are no operators.
#include <string>

#include "lamina/border/tensor_object.h"
#include "lamina/ops/imag.h"
#include "lamina/ops/real.h"
#include "lamina/transforms/batched.h"

namespace lamina::border {

namespace {

bool holds_sizes(PyObject* size, IntList sizes) {
  if (PyTuple_GET_SIZE(size) != static_cast<Py_ssize_t>(sizes.size())) return false;
  for (size_t i = 0; i < sizes.size(); ++i)
    if (PyLong_AsLongLong(PyTuple_GET_ITEM(size, static_cast<Py_ssize_t>(i))) != sizes[i])
      return false;
  return true;
}

PyObject* get_shape(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  auto* o = reinterpret_cast<TensorObject*>(self);
  const IntList sizes = o->value.sizes();
  if (!o->shape || !holds_sizes(o->shape, sizes)) {
    PyObject* fresh = wrap_size(sizes);
    Py_XSETREF(o->shape, fresh);
  }
  return Py_NewRef(o->shape);
  LAMINA_BORDER_END
}
PyObject* get_dtype(PyObject* self, void*) { return wrap(unwrap(self).dtype()); }
PyObject* get_device(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  return wrap(unwrap(self).device());
  LAMINA_BORDER_END
}
PyObject* get_layout(PyObject*, void*) { return wrap(Layout::Strided); }
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLongLong(unwrap(self).dim()); }
PyObject* get_itemsize(PyObject* self, void*) {
  return PyLong_FromSize_t(item_size(unwrap(self).dtype()));
}
PyObject* get_nbytes(PyObject* self, void*) { return PyLong_FromSize_t(unwrap(self).nbytes()); }
PyObject* get_version(PyObject* self, void*) {
  return PyLong_FromUnsignedLong(unwrap(self).impl()->version());
}
template <DeviceType type>
PyObject* get_is_on(PyObject* self, void*) {
  return PyBool_FromLong(unwrap(self).device().type == type);
}
// What a dense tensor of this library never is.
PyObject* get_false(PyObject*, void*) { Py_RETURN_FALSE; }
PyObject* get_none(PyObject*, void*) { Py_RETURN_NONE; }

PyObject* get_names(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  const int64_t n = unwrap(self).dim();
  Ref names = owned(PyTuple_New(n));
  for (int64_t i = 0; i < n; ++i) PyTuple_SET_ITEM(names.get(), i, Py_NewRef(Py_None));
  return names.leak();
  LAMINA_BORDER_END
}

Ref int_object(int64_t v) { return owned(PyLong_FromLongLong(v)); }

Ref transposed(PyObject* self) {
  Ref a = int_object(-2), b = int_object(-1);
  return call_method(generated_method("transpose"), self, a.get(), b.get());
}
Ref conjugated(Ref t) {
  if (!is_complex(unwrap(t.get()).dtype())) return t;
  return call_method(generated_method("conj"), t.get());
}

// All dimensions in reverse order.
PyObject* get_t(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  const int64_t n = unwrap(self).dim();
  if (n == 2) return transposed(self).leak();
  Sizes order;
  for (int64_t i = n - 1; i >= 0; --i) order.push_back(i);
  Ref list = owned(wrap_ints(order));
  return call_method(generated_method("permute"), self, list.get()).leak();
  LAMINA_BORDER_END
}
PyObject* get_mt(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  const int64_t n = unwrap(self).dim();
  LAMINA_CHECK(n >= 2, "tensor.mT: only supported on matrices or batches of matrices; got a ", n,
               "-D tensor");
  return transposed(self).leak();
  LAMINA_BORDER_END
}
PyObject* get_h(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  const int64_t n = unwrap(self).dim();
  LAMINA_CHECK(n == 2 || n == 0, "tensor.H: only supported on matrices (2-D tensors); got a ", n,
               "-D tensor; for batches of matrices use tensor.mH");
  if (n == 0) return conjugated(Ref::share(self)).leak();
  return conjugated(transposed(self)).leak();
  LAMINA_BORDER_END
}
PyObject* get_mh(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  const int64_t n = unwrap(self).dim();
  LAMINA_CHECK(n >= 2, "tensor.mH: only supported on matrices or batches of matrices; got a ", n,
               "-D tensor");
  return conjugated(transposed(self)).leak();
  LAMINA_BORDER_END
}
PyObject* get_real(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  if (!is_complex(unwrap(self).dtype())) return Py_NewRef(self);
  return wrap(ops::real(unwrap(self)));
  LAMINA_BORDER_END
}
PyObject* get_imag(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  return wrap(ops::imag(unwrap(self)));
  LAMINA_BORDER_END
}
template <bool imaginary>
int set_part(PyObject* self, PyObject* value, void*) {
  LAMINA_BORDER_BEGIN
  if (!value) raise_type("cannot delete the parts of a tensor");
  Ref part = Ref::steal(imaginary ? get_imag(self, nullptr) : get_real(self, nullptr));
  if (!part) return -1;
  Ref source = is_tensor(value)
                   ? Ref::share(value)
                   : owned(wrap(make_scalar_tensor(to_scalar(value), unwrap(part.get()).dtype())));
  call_method(generated_method("copy_"), part.get(), source.get());
  return 0;
  LAMINA_BORDER_END_WITH(-1)
}
int set_data(PyObject* self, PyObject* value, void*) {
  LAMINA_BORDER_BEGIN
  if (!value || !is_tensor(value))
    raise_type(std::string("Variable data has to be a tensor, but got ") +
               (value ? Py_TYPE(value)->tp_name : "nothing"));
  const Tensor& t = unwrap(self);
  const Tensor& source = unwrap(value);
  LAMINA_CHECK(t.device() == source.device(), "set data: the devices differ");
  LAMINA_CHECK(!transforms::is_batched(t) && !transforms::is_batched(source),
               "set data: inside vmap a tensor stands for all samples and has no bytes of its own");
  TensorImpl* impl = t.impl();
  impl->set_storage(IntrusivePtr<Storage>::share(source.storage()));
  impl->set_dtype(source.dtype());
  impl->set_window(source.sizes(), source.strides(), source.storage_offset());
  return 0;
  LAMINA_BORDER_END_WITH(-1)
}
PyObject* get_data(PyObject* self, void*) {
  LAMINA_BORDER_BEGIN
  Ref detached = call_method(generated_method("detach"), self);
  // Writes through .data are not seen by saved tensors: it counts its own versions.
  unwrap(detached.get()).impl()->set_version_counter(IntrusivePtr<VersionCounter>::make());
  return detached.leak();
  LAMINA_BORDER_END
}

}  // namespace

PyGetSetDef tensor_attributes[] = {
    {"shape", get_shape, nullptr, "Sizes.", nullptr},
    {"dtype", get_dtype, nullptr, "Type of the elements.", nullptr},
    {"device", get_device, nullptr, "Where the bytes are.", nullptr},
    {"layout", get_layout, nullptr, "How elements lie in memory: strided.", nullptr},
    {"ndim", get_ndim, nullptr, "Number of dimensions.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element.", nullptr},
    {"nbytes", get_nbytes, nullptr, "Bytes of all elements.", nullptr},
    {"data", get_data, set_data, "The same values, without gradient.", nullptr},
    {"T", get_t, nullptr, "Dimensions in reverse order.", nullptr},
    {"mT", get_mt, nullptr, "The last two dimensions exchanged.", nullptr},
    {"H", get_h, nullptr, "Conjugate transpose of a matrix.", nullptr},
    {"mH", get_mh, nullptr, "Conjugate transpose of the last two dimensions.", nullptr},
    {"real", get_real, set_part<false>, "Real part.", nullptr},
    {"imag", get_imag, set_part<true>, "Imaginary part.", nullptr},
    {"names", get_names, nullptr, "Names of the dimensions: None for each, they have none here.",
     nullptr},
    {"is_cpu", get_is_on<DeviceType::CPU>, nullptr,
     "Whether the bytes are in the memory of the CPU.", nullptr},
    {"is_cuda", get_is_on<DeviceType::CUDA>, nullptr, "Whether the bytes are on a CUDA device.",
     nullptr},
    {"is_meta", get_is_on<DeviceType::Meta>, nullptr,
     "Whether there are no bytes, only sizes and a type.", nullptr},
    {"is_sparse", get_false, nullptr, "False: all tensors are strided.", nullptr},
    {"is_sparse_csr", get_false, nullptr, "False: all tensors are strided.", nullptr},
    {"is_quantized", get_false, nullptr, "False: there are no quantized types.", nullptr},
    {"is_nested", get_false, nullptr, "False: there are no nested tensors.", nullptr},
    {"is_mkldnn", get_false, nullptr, "False: there is no such layout.", nullptr},
    {"is_mps", get_false, nullptr, "False: there is no such device.", nullptr},
    {"is_xpu", get_false, nullptr, "False: there is no such device.", nullptr},
    {"is_xla", get_false, nullptr, "False: there is no such device.", nullptr},
    {"is_vulkan", get_false, nullptr, "False: there is no such device.", nullptr},
    {"name", get_none, nullptr, "None: tensors have no names.", nullptr},
    {"_version", get_version, nullptr, "Number of writes in place.", nullptr},
    {}};

}  // namespace lamina::border
