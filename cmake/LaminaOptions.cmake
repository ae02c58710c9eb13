# Options, dependencies and the compile settings that every target of ours shares.

option(LAMINA_PYTHON "Build the Python extension" ON)
option(LAMINA_TESTS "Add the C++ tests (target lamina_tests, not part of all)" OFF)
option(LAMINA_WERROR "Treat warnings as errors" OFF)
set(LAMINA_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")
set(LAMINA_EXTRA_RPATH "" CACHE STRING "Further run path of the installed libraries")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
# Kernels ask for -O3 themselves (lamina_kernel_sources); most code is glue and generated wrappers.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(LAMINA_CCACHE ccache)
  mark_as_advanced(LAMINA_CCACHE)
  if(LAMINA_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${LAMINA_CCACHE}")
  endif()
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 11)
  message(FATAL_ERROR "Lamina needs g++ 11 or newer (C++20); found ${CMAKE_CXX_COMPILER_VERSION}")
endif()

find_package(Threads REQUIRED)

# Packed relative relocations make the libraries 6 % smaller. The C library that loads them has to know them: glibc 2.36.
include(CheckCXXSourceCompiles)
include(CheckLinkerFlag)
check_cxx_source_compiles("#include <features.h>
#if !__GLIBC_PREREQ(2, 36)
#error too old
#endif
int main() {}" LAMINA_GLIBC_LOADS_RELR)
check_linker_flag(CXX -Wl,-z,pack-relative-relocs LAMINA_LINKER_WRITES_RELR)
if(LAMINA_PYTHON)
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
else()
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
endif()

# OpenBLAS comes as a Python package; ask it where its files are.
execute_process(
  COMMAND "${Python_EXECUTABLE}" -c
          "import scipy_openblas32 as b; print(b.get_include_dir()); print(b.get_lib_dir())"
  OUTPUT_VARIABLE lamina_blas_dirs OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE lamina_blas_failed ERROR_QUIET)
if(lamina_blas_failed)
  message(FATAL_ERROR "Lamina needs the Python package scipy-openblas32: "
                      "${Python_EXECUTABLE} -m pip install scipy-openblas32")
endif()
string(REPLACE "\n" ";" lamina_blas_dirs "${lamina_blas_dirs}")
list(GET lamina_blas_dirs 0 LAMINA_BLAS_INCLUDE)
list(GET lamina_blas_dirs 1 LAMINA_BLAS_LIB)
add_library(lamina_blas INTERFACE)
target_include_directories(lamina_blas SYSTEM INTERFACE "${LAMINA_BLAS_INCLUDE}")

# Where things land. In a wheel everything lives in the package folder, site-packages/lamina.
if(SKBUILD)
  set(LAMINA_PACKAGE_DIR lamina)
else()
  set(LAMINA_PACKAGE_DIR "" CACHE STRING "Folder under the install prefix for all files")
endif()
if(LAMINA_PACKAGE_DIR)
  set(CMAKE_INSTALL_INCLUDEDIR "${LAMINA_PACKAGE_DIR}/include")
  set(CMAKE_INSTALL_LIBDIR "${LAMINA_PACKAGE_DIR}/lib")
  set(LAMINA_PYTHON_DIR "${LAMINA_PACKAGE_DIR}")
else()
  set(LAMINA_PYTHON_DIR "lib/python/lamina")
endif()

function(lamina_compile_settings target)
  target_compile_options(
    ${target} PRIVATE -Wall -Wextra -ffp-contract=off -fno-math-errno -fno-semantic-interposition
                      -fno-plt -ftls-model=initial-exec -fvisibility-inlines-hidden)
  if(LAMINA_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  target_link_options(${target} PRIVATE -Wl,--as-needed -Wl,-O1 -Wl,-Bsymbolic-functions
                      -Wl,-z,now)
  if(LAMINA_GLIBC_LOADS_RELR AND LAMINA_LINKER_WRITES_RELR)
    target_link_options(${target} PRIVATE -Wl,-z,pack-relative-relocs)
  endif()
  if(LAMINA_SANITIZE)
    # Traces need frames and lines; recovery is off so that a finding ends the test run.
    target_compile_options(${target} PRIVATE -fsanitize=${LAMINA_SANITIZE} -g1 -O1
                           -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${target} PRIVATE -fsanitize=${LAMINA_SANITIZE})
  endif()
endfunction()

# lamina_kernel_sources(file.cpp... [SMALL] [FLAGS flag...]): sources of the library whose loops are hot.
# FLAGS names the instruction set, e.g. FLAGS -mavx2 -mfma. SMALL is for loops made for many types, of which the hottest
# are written with vectors: they are vectorized, but not in several versions each.
function(lamina_kernel_sources)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SMALL" "" "FLAGS")
  target_sources(lamina PRIVATE ${arg_UNPARSED_ARGUMENTS})
  if(LAMINA_SANITIZE)
    set(level -O1)
  elseif(arg_SMALL)
    set(level -O2 -ftree-vectorize -fvect-cost-model=cheap)
  else()
    set(level -O3)
  endif()
  foreach(file IN LISTS arg_UNPARSED_ARGUMENTS)
    set_property(SOURCE "${file}" TARGET_DIRECTORY lamina APPEND
                 PROPERTY COMPILE_OPTIONS ${level} ${arg_FLAGS})
  endforeach()
endfunction()
