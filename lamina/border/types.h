// The small immutable types of the API: dtype, device, layout, memory_format, Size, Generator.
#pragma once

#include "lamina/border/python.h"
#include "lamina/core/defaults.h"
#include "lamina/core/device.h"
#include "lamina/core/generator.h"
#include "lamina/core/scalar_type.h"
#include "lamina/core/small_vector.h"

namespace lamina::border {

struct DtypeObject {
  PyObject_HEAD ScalarType value;
};
struct DeviceObject {
  PyObject_HEAD Device value;
};
// layout and memory_format
struct EnumObject {
  PyObject_HEAD int8_t value;
  const char* text;
};
struct GeneratorObject {
  PyObject_HEAD Generator value;
  PyObject* weakrefs;
};

extern PyTypeObject dtype_type;
extern PyTypeObject device_type;
extern PyTypeObject layout_type;
extern PyTypeObject memory_format_type;
extern PyTypeObject size_type;
extern PyTypeObject generator_type;

// Each adds its types and constants to the module.
void add_dtypes(PyObject* module);
void add_devices(PyObject* module);
void add_layouts(PyObject* module);
void add_size(PyObject* module);
void add_generator(PyObject* module);

// A dtype object, or one of Python's types float, int, bool, complex.
bool is_dtype(PyObject* object);
ScalarType to_dtype(PyObject* object);
PyObject* dtype_object(ScalarType t);  // borrowed

// A device object, a string, or an index.
bool is_device(PyObject* object);
Device to_device(PyObject* object);

// The device of new tensors where none is named.
Device default_device();
void set_default_device(Device d);

// The module that types and constants say they come from: "lamina", or "torch" under the alias.
const char* public_module();

// Numbers and texts of Python's constants CONTIGUOUS ... for layout and memory_format objects.
Layout to_layout(PyObject* object);
MemoryFormat to_memory_format(PyObject* object);

}  // namespace lamina::border
