// UntypedStorage: the bytes behind a family of views, as far as Python may look at them.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "lamina/border/tensor_object.h"
#include "lamina/kernels/result.h"

namespace lamina::border {

namespace {

struct StorageObject {
  PyObject_HEAD IntrusivePtr<Storage> value;
};
extern PyTypeObject storage_type;

const IntrusivePtr<Storage>& value_of(PyObject* self) {
  return reinterpret_cast<StorageObject*>(self)->value;
}
void dealloc(PyObject* self) {
  reinterpret_cast<StorageObject*>(self)->value.~IntrusivePtr<Storage>();
  Py_TYPE(self)->tp_free(self);
}
Py_ssize_t length(PyObject* self) {
  return value_of(self) ? static_cast<Py_ssize_t>(value_of(self)->nbytes()) : 0;
}
PyObject* data_ptr(PyObject* self, PyObject*) {
  return PyLong_FromVoidPtr(length(self) > 0 ? value_of(self)->data() : nullptr);
}
PyObject* nbytes(PyObject* self, PyObject*) { return PyLong_FromSsize_t(length(self)); }
PyObject* element_size(PyObject*, PyObject*) { return PyLong_FromLong(1); }
PyObject* get_device(PyObject* self, void*) {
  return wrap(value_of(self) ? value_of(self)->device() : kMeta);
}
PyObject* get_cdata(PyObject* self, void*) { return PyLong_FromVoidPtr(value_of(self).get()); }
PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != Py_TYPE(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((value_of(a) == value_of(b)) == (op == Py_EQ));
}
Py_hash_t hash(PyObject* self) { return _Py_HashPointer(value_of(self).get()); }
PyObject* item(PyObject* self, Py_ssize_t i) {
  if (i < 0 || i >= length(self) || !value_of(self)->data()) {
    PyErr_SetString(PyExc_IndexError, "storage: index out of range");
    return nullptr;
  }
  return PyLong_FromLong(static_cast<const uint8_t*>(value_of(self)->data())[i]);
}

// A position, counted from the end where it is negative.
uint8_t* byte_at(PyObject* self, Py_ssize_t i) {
  if (i < 0) i += length(self);
  if (i < 0 || i >= length(self) || !value_of(self)->data())
    raise_index("storage: index out of range");
  return static_cast<uint8_t*>(value_of(self)->data()) + i;
}

// storage[i], storage[a:b]: a byte, or a storage of a part of the same bytes.
PyObject* subscript(PyObject* self, PyObject* index) {
  LAMINA_BORDER_BEGIN
  if (PySlice_Check(index)) {
    Py_ssize_t start, stop, step;
    checked(PySlice_Unpack(index, &start, &stop, &step));
    const Py_ssize_t n = PySlice_AdjustIndices(length(self), &start, &stop, step);
    if (step != 1) raise_runtime("storage: a slice must have step 1");
    char* base = static_cast<char*>(value_of(self) ? value_of(self)->data() : nullptr);
    // The part keeps the whole alive.
    auto* whole = new IntrusivePtr<Storage>(IntrusivePtr<Storage>::share(value_of(self).get()));
    return wrap_storage(Storage::make(
        base ? base + start : nullptr, static_cast<size_t>(n), kCpu,
        [](void*, size_t, void* held) noexcept {
          delete static_cast<IntrusivePtr<Storage>*>(held);
        },
        whole));
  }
  return PyLong_FromLong(*byte_at(self, static_cast<Py_ssize_t>(to_int(index))));
  LAMINA_BORDER_END
}
int assign(PyObject* self, PyObject* index, PyObject* value) {
  LAMINA_BORDER_BEGIN
  if (!value) raise_type("storage: bytes cannot be deleted");
  const auto byte = static_cast<uint8_t>(to_int(value));
  if (PySlice_Check(index)) {
    Py_ssize_t start, stop, step;
    checked(PySlice_Unpack(index, &start, &stop, &step));
    const Py_ssize_t n = PySlice_AdjustIndices(length(self), &start, &stop, step);
    for (Py_ssize_t i = 0; i < n; ++i) *byte_at(self, start + i * step) = byte;
  } else {
    *byte_at(self, static_cast<Py_ssize_t>(to_int(index))) = byte;
  }
  value_of(self)->bump_version();
  return 0;
  LAMINA_BORDER_END_WITH(-1)
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  static char nothing[1];
  void* data = value_of(self) ? value_of(self)->data() : nullptr;
  if (!data && length(self) > 0) {
    PyErr_SetString(PyExc_BufferError, "storage: no memory to look at");
    return -1;
  }
  return PyBuffer_FillInfo(view, self, data ? data : nothing, length(self), 0, flags);
}
PyBufferProcs as_buffer = {get_buffer, nullptr};

// UntypedStorage(), UntypedStorage(bytes), UntypedStorage([1, 2, 3])
PyObject* make(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  LAMINA_BORDER_BEGIN
  static const char* names[] = {"size", "device", nullptr};
  PyObject *size = nullptr, *device = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$O:UntypedStorage", const_cast<char**>(names),
                                   &size, &device))
    return nullptr;
  const Device place = device && device != Py_None ? to_device(device) : kCpu;
  const int64_t n = !size ? 0 : is_int(size) ? to_int(size) : PySequence_Size(size);
  if (n < 0) {
    if (PyErr_Occurred()) return nullptr;
    raise_runtime("UntypedStorage: the size must not be negative; got " + std::to_string(n));
  }
  Ref self = owned(wrap_storage(IntrusivePtr<Storage>::share(
      empty_contiguous(Sizes{n}, ScalarType::UInt8, place).storage())));
  if (size && !is_int(size))
    for (Py_ssize_t i = 0; i < n; ++i) {
      Ref item = owned(PySequence_GetItem(size, i));
      *byte_at(self.get(), i) = static_cast<uint8_t>(to_int(item.get()));
    }
  return self.leak();
  LAMINA_BORDER_END
}

PyObject* tolist(PyObject* self, PyObject*) { return PySequence_List(self); }
PyObject* clone(PyObject* self, PyObject*) {
  LAMINA_BORDER_BEGIN
  const Tensor copy = empty_contiguous(Sizes{length(self)}, ScalarType::UInt8, kCpu);
  if (length(self) > 0 && value_of(self)->data())
    std::memcpy(copy.data(), value_of(self)->data(), static_cast<size_t>(length(self)));
  return wrap_storage(IntrusivePtr<Storage>::share(copy.storage()));
  LAMINA_BORDER_END
}
PyObject* cpu(PyObject* self, PyObject*) { return Py_NewRef(self); }
PyObject* resizable(PyObject* self, PyObject*) {
  return PyBool_FromLong(value_of(self) && value_of(self)->resizable());
}
// Functions of lamina.storage that take the storage first.
template <const char* name>
PyObject* in_python(PyObject* self, PyObject* args) {
  LAMINA_BORDER_BEGIN
  Ref module = owned(PyImport_ImportModule("lamina.storage"));
  Ref function = owned(PyObject_GetAttrString(module.get(), name));
  Ref first = owned(PyTuple_Pack(1, self));
  Ref all = owned(PySequence_Concat(first.get(), args));
  return PyObject_CallObject(function.get(), all.get());
  LAMINA_BORDER_END
}
constexpr char kFill[] = "_fill", kCopy[] = "_copy", kResize[] = "_resize", kShare[] = "_share",
               kReduce[] = "_reduce", kIsShared[] = "_is_shared", kByteswap[] = "_byteswap",
               kDeepcopy[] = "_deepcopy", kTo[] = "_to", kType[] = "_type", kNew[] = "_new",
               kIsPinned[] = "_is_pinned";

// UntypedStorage.from_file(filename, shared=False, nbytes=0): the bytes of a file, mapped.
PyObject* from_file(PyObject*, PyObject* args, PyObject* kwargs) {
  LAMINA_BORDER_BEGIN
  Ref module = owned(PyImport_ImportModule("lamina.storage"));
  Ref function = owned(PyObject_GetAttrString(module.get(), "_from_file"));
  return PyObject_Call(function.get(), args, kwargs);
  LAMINA_BORDER_END
}

PyMappingMethods as_mapping = {length, subscript, assign};
PySequenceMethods as_sequence = [] {
  PySequenceMethods m{};
  m.sq_length = length;
  m.sq_item = item;
  return m;
}();
PyMethodDef methods[] = {
    {"data_ptr", data_ptr, METH_NOARGS, "Address of the first byte."},
    {"nbytes", nbytes, METH_NOARGS, "Number of bytes."},
    {"size", nbytes, METH_NOARGS, "Number of bytes."},
    {"element_size", element_size, METH_NOARGS, nullptr},
    {"tolist", tolist, METH_NOARGS, "The bytes as ints."},
    {"clone", clone, METH_NOARGS, "A storage with copies of the bytes."},
    {"cpu", cpu, METH_NOARGS, "The storage itself."},
    {"resizable", resizable, METH_NOARGS, nullptr},
    {"fill_", in_python<kFill>, METH_VARARGS, nullptr},
    {"copy_", in_python<kCopy>, METH_VARARGS, nullptr},
    {"resize_", in_python<kResize>, METH_VARARGS, nullptr},
    {"share_memory_", in_python<kShare>, METH_VARARGS, nullptr},
    {"is_shared", in_python<kIsShared>, METH_VARARGS, nullptr},
    {"__reduce__", in_python<kReduce>, METH_VARARGS, nullptr},
    {"__deepcopy__", in_python<kDeepcopy>, METH_VARARGS, nullptr},
    {"__copy__", clone, METH_NOARGS, nullptr},
    {"untyped", cpu, METH_NOARGS, "The storage itself."},
    {"pin_memory", in_python<kTo>, METH_VARARGS, nullptr},
    {"is_pinned", in_python<kIsPinned>, METH_VARARGS, nullptr},
    {"to", in_python<kTo>, METH_VARARGS, nullptr},
    {"type", in_python<kType>, METH_VARARGS, nullptr},
    {"new", in_python<kNew>, METH_VARARGS, nullptr},
    {"byteswap", in_python<kByteswap>, METH_VARARGS, "Turn the bytes of each element around."},
    {"from_file", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&from_file)),
     METH_VARARGS | METH_KEYWORDS | METH_STATIC, "The bytes of a file, mapped into memory."},
    {}};
PyGetSetDef getset[] = {{"device", get_device, nullptr, nullptr, nullptr},
                        {"_cdata", get_cdata, nullptr, nullptr, nullptr},
                        {}};

PyTypeObject storage_type = [] {
  PyTypeObject t = blank_type();
  t.tp_name = "lamina.UntypedStorage";
  t.tp_basicsize = sizeof(StorageObject);
  t.tp_dealloc = dealloc;
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_richcompare = compare;
  t.tp_hash = hash;
  t.tp_as_sequence = &as_sequence;
  t.tp_as_mapping = &as_mapping;
  t.tp_as_buffer = &as_buffer;
  t.tp_new = make;
  t.tp_methods = methods;
  t.tp_getset = getset;
  t.tp_doc = "The bytes that views of a tensor share.";
  return t;
}();

}  // namespace

namespace {

// The window (storage, offset, sizes, strides) must lie inside the bytes.
void set_window(const Tensor& t, PyObject* storage, PyObject* offset, PyObject* size,
                PyObject* stride) {
  if (Py_TYPE(storage) != &storage_type)
    raise_type(std::string("expected an UntypedStorage, not ") + Py_TYPE(storage)->tp_name);
  const IntrusivePtr<Storage>& bytes = value_of(storage);
  // A storage of the meta device has a length and no bytes.
  LAMINA_CHECK(bytes ? bytes->device() == t.device() : t.is_meta() || length(storage) == 0,
               "set_: the storage lies on another device than the tensor; got ", t);
  const auto item = static_cast<int64_t>(item_size(t.dtype()));
  const int64_t room = length(storage) / item;
  const int64_t first = offset == Py_None ? 0 : to_int(offset);
  const Sizes sizes = size == Py_None ? Sizes{std::max<int64_t>(room - first, 0)} : to_sizes(size);
  Sizes strides(sizes.size(), 1);
  if (stride != Py_None) {
    strides = to_sizes(stride);
    LAMINA_CHECK(strides.size() == sizes.size(), "set_: sizes and strides must be equally many");
  } else {
    for (size_t i = sizes.size(); i-- > 1;)
      LAMINA_CHECK(
          !__builtin_mul_overflow(strides[i], std::max<int64_t>(sizes[i], 1), &strides[i - 1]),
          "set_: the sizes are too large; got ", IntList(sizes));
  }
  int64_t low = first, high = first;
  bool empty = false, fits = true;
  for (size_t i = 0; i < sizes.size(); ++i) {
    LAMINA_CHECK(sizes[i] >= 0, "set_: a negative size; got ", IntList(sizes));
    empty |= sizes[i] == 0;
    int64_t reach = 0;
    int64_t& end = strides[i] < 0 ? low : high;
    fits = fits &&
           !__builtin_mul_overflow(std::max<int64_t>(sizes[i] - 1, 0), strides[i], &reach) &&
           !__builtin_add_overflow(end, reach, &end);
  }
  LAMINA_CHECK(first >= 0 && fits && (empty || (low >= 0 && high < room)),
               "set_: the window leaves the storage; got sizes ", IntList(sizes), ", strides ",
               IntList(strides), ", storage_offset ", first, " for ", room, " elements");
  const bool elsewhere = bytes && bytes->device() != t.device();
  LAMINA_CHECK(!elsewhere || room == 0, "set_: Attempted to set the storage of a tensor on device ",
               t.device(), " to a storage on different device ", bytes->device());
  t.impl()->set_storage(elsewhere ? Storage::make(nullptr, 0, t.device(), nullptr)
                                  : IntrusivePtr<Storage>::share(bytes.get()));
  t.impl()->set_window(sizes, strides, first);
}

// _from_storage(storage, dtype, offset=None, size=None, stride=None): a tensor on those bytes.
PyObject* from_storage(PyObject*, PyObject* args) {
  LAMINA_BORDER_BEGIN
  PyObject *storage, *dtype, *offset = Py_None, *size = Py_None, *stride = Py_None;
  if (!PyArg_ParseTuple(args, "OO|OOO:_from_storage", &storage, &dtype, &offset, &size, &stride))
    return nullptr;
  const Device place =
      Py_TYPE(storage) == &storage_type && value_of(storage) ? value_of(storage)->device() : kCpu;
  Tensor t = Tensor::adopt(TensorImpl::make(to_dtype(dtype), place, strided_keys(place.type),
                                            Storage::make(nullptr, 0, place, nullptr)));
  set_window(t, storage, offset, size, stride);
  return wrap(std::move(t));
  LAMINA_BORDER_END
}
// _set_storage(tensor, storage, offset, size, stride): the tensor looks at other bytes.
PyObject* set_storage(PyObject*, PyObject* args) {
  LAMINA_BORDER_BEGIN
  PyObject *tensor, *storage, *offset = Py_None, *size = Py_None, *stride = Py_None;
  if (!PyArg_ParseTuple(args, "OO|OOO:_set_storage", &tensor, &storage, &offset, &size, &stride))
    return nullptr;
  if (!is_tensor(tensor)) raise_type("_set_storage: expected a Tensor");
  set_window(unwrap(tensor), storage, offset, size, stride);
  unwrap(tensor).impl()->bump_version();
  return Py_NewRef(tensor);
  LAMINA_BORDER_END
}
void release_buffer(void*, size_t, void* held) noexcept {
  if (!Py_IsInitialized()) return;
  const PyGILState_STATE state = PyGILState_Ensure();
  auto* buffer = static_cast<Py_buffer*>(held);
  PyBuffer_Release(buffer);
  delete buffer;
  PyGILState_Release(state);
}
std::unique_ptr<Py_buffer> writable_buffer(PyObject* object) {
  auto view = std::make_unique<Py_buffer>();
  checked(PyObject_GetBuffer(object, view.get(), PyBUF_WRITABLE));
  return view;
}

// _storage_from_buffer(object): a storage on the memory of an exporter of buffers.
PyObject* from_buffer(PyObject*, PyObject* object) {
  LAMINA_BORDER_BEGIN
  std::unique_ptr<Py_buffer> view = writable_buffer(object);
  void* data = view->buf;
  const auto size = static_cast<size_t>(view->len);
  IntrusivePtr<Storage> storage = Storage::make(data, size, kCpu, release_buffer, view.release());
  storage->set_resizable(false);
  return wrap_storage(std::move(storage));
  LAMINA_BORDER_END
}
// _storage_replace(storage, object): the same storage, for all its views, on other memory.
PyObject* replace(PyObject*, PyObject* args) {
  LAMINA_BORDER_BEGIN
  PyObject *self, *object;
  if (!PyArg_ParseTuple(args, "O!O:_storage_replace", &storage_type, &self, &object))
    return nullptr;
  if (!value_of(self)) raise_runtime("_storage_replace: the storage has no memory");
  std::unique_ptr<Py_buffer> view = writable_buffer(object);
  void* data = view->buf;
  const auto size = static_cast<size_t>(view->len);
  value_of(self)->reset(data, size, release_buffer, view.release());
  Py_RETURN_NONE;
  LAMINA_BORDER_END
}

}  // namespace

PyMethodDef storage_functions[] = {{"_from_storage", from_storage, METH_VARARGS, nullptr},
                                   {"_set_storage", set_storage, METH_VARARGS, nullptr},
                                   {"_storage_from_buffer", from_buffer, METH_O, nullptr},
                                   {"_storage_replace", replace, METH_VARARGS, nullptr},
                                   {}};

void add_storage_type(PyObject* module) {
  checked(PyType_Ready(&storage_type));
  checked(
      PyModule_AddObjectRef(module, "UntypedStorage", reinterpret_cast<PyObject*>(&storage_type)));
}

bool is_storage(PyObject* object) { return Py_TYPE(object) == &storage_type; }

PyObject* wrap_storage(IntrusivePtr<Storage> storage) {
  PyObject* o = checked(storage_type.tp_alloc(&storage_type, 0));
  new (&reinterpret_cast<StorageObject*>(o)->value) IntrusivePtr<Storage>(std::move(storage));
  return o;
}

}  // namespace lamina::border
