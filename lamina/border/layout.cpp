// layout and memory_format: named constants.
#include "lamina/border/types.h"
#include "lamina/border/wrap.h"

namespace lamina::border {

namespace {

PyObject* layouts[6];
PyObject* formats[4];

PyObject* repr(PyObject* self) {
  return PyUnicode_FromString(reinterpret_cast<EnumObject*>(self)->text);
}
// Pickled by name, found in the module.
PyObject* reduce(PyObject* self, PyObject*) {
  return PyUnicode_FromString(reinterpret_cast<EnumObject*>(self)->text + sizeof("torch.") - 1);
}
PyMethodDef methods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {}};
PyObject* get_module(PyObject*, void*) { return PyUnicode_FromString(public_module()); }
PyGetSetDef getset[] = {{"__module__", get_module, nullptr, nullptr, nullptr}, {}};

PyTypeObject make_type(const char* name, const char* doc) {
  PyTypeObject t = blank_type();
  t.tp_name = name;
  t.tp_doc = doc;
  t.tp_basicsize = sizeof(EnumObject);
  t.tp_repr = repr;
  t.tp_flags = Py_TPFLAGS_DEFAULT;
  t.tp_methods = methods;
  t.tp_getset = getset;
  return t;
}

template <size_t N>
void add(PyObject* module, PyTypeObject* type, const char* const (&texts)[N],
         PyObject* (&into)[N]) {
  for (size_t i = 0; i < N; ++i) {
    auto* o = PyObject_New(EnumObject, type);
    into[i] = checked(reinterpret_cast<PyObject*>(o));
    o->value = static_cast<int8_t>(i);
    o->text = texts[i];
    checked(PyModule_AddObjectRef(module, texts[i] + sizeof("torch.") - 1, into[i]));
  }
}

}  // namespace

PyTypeObject layout_type =
    make_type("lamina.layout", "How the elements of a tensor lie in memory: lamina.strided.");
PyTypeObject memory_format_type =
    make_type("lamina.memory_format",
              "Order of the dimensions in memory: lamina.contiguous_format, channels_last.");

void add_layouts(PyObject* module) {
  checked(PyType_Ready(&layout_type));
  checked(PyType_Ready(&memory_format_type));
  checked(PyModule_AddObjectRef(module, "layout", reinterpret_cast<PyObject*>(&layout_type)));
  checked(PyModule_AddObjectRef(module, "memory_format",
                                reinterpret_cast<PyObject*>(&memory_format_type)));
  add(module, &layout_type,
      {"torch.strided", "torch.sparse_coo", "torch.sparse_csr", "torch.sparse_csc",
       "torch.sparse_bsr", "torch.sparse_bsc"},
      layouts);
  add(module, &memory_format_type,
      {"torch.contiguous_format", "torch.preserve_format", "torch.channels_last",
       "torch.channels_last_3d"},
      formats);
}

PyObject* wrap(Layout v) { return Py_NewRef(layouts[static_cast<int>(v)]); }
PyObject* wrap(MemoryFormat v) { return Py_NewRef(formats[static_cast<int>(v)]); }

Layout to_layout(PyObject* object) {
  if (Py_TYPE(object) != &layout_type)
    raise_type(std::string("expected a layout, not ") + Py_TYPE(object)->tp_name);
  return static_cast<Layout>(reinterpret_cast<EnumObject*>(object)->value);
}
MemoryFormat to_memory_format(PyObject* object) {
  if (Py_TYPE(object) != &memory_format_type)
    raise_type(std::string("expected a memory format, not ") + Py_TYPE(object)->tp_name);
  return static_cast<MemoryFormat>(reinterpret_cast<EnumObject*>(object)->value);
}

}  // namespace lamina::border
