# One install serves Python (import lamina) and CMake (find_package(Lamina)).

include(CMakePackageConfigHelpers)

set(lamina_rpath "$ORIGIN" "$ORIGIN/../../scipy_openblas32/lib")
if(NOT SKBUILD OR LAMINA_EXTRA_RPATH)
  list(APPEND lamina_rpath ${LAMINA_EXTRA_RPATH})
  if(NOT SKBUILD)
    list(APPEND lamina_rpath "${LAMINA_BLAS_LIB}")
  endif()
endif()
set_target_properties(lamina PROPERTIES INSTALL_RPATH "${lamina_rpath}"
                                        BUILD_RPATH "${LAMINA_BLAS_LIB}")
install(TARGETS lamina EXPORT LaminaTargets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

install(DIRECTORY "${CMAKE_SOURCE_DIR}/lamina" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h" PATTERN "border" EXCLUDE)
install(DIRECTORY "${LAMINA_GEN_DIR}/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
        FILES_MATCHING PATTERN "*.h" PATTERN "border" EXCLUDE)

set(lamina_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Lamina")
install(EXPORT LaminaTargets NAMESPACE Lamina:: DESTINATION "${lamina_cmake_dir}")
configure_package_config_file(
  "${CMAKE_SOURCE_DIR}/cmake/LaminaConfig.cmake.in" "${CMAKE_BINARY_DIR}/LaminaConfig.cmake"
  INSTALL_DESTINATION "${lamina_cmake_dir}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/LaminaConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/LaminaConfig.cmake"
              "${CMAKE_BINARY_DIR}/LaminaConfigVersion.cmake"
        DESTINATION "${lamina_cmake_dir}")

if(LAMINA_PYTHON)
  set_target_properties(
    lamina_border PROPERTIES INSTALL_RPATH "$ORIGIN/lib;$ORIGIN/../../../lib"
                             BUILD_RPATH "${CMAKE_BINARY_DIR};${LAMINA_BLAS_LIB}")
  install(TARGETS lamina_border LIBRARY DESTINATION "${LAMINA_PYTHON_DIR}")
  install(DIRECTORY "${CMAKE_SOURCE_DIR}/python/lamina/" DESTINATION "${LAMINA_PYTHON_DIR}"
          FILES_MATCHING PATTERN "*.py" PATTERN "*.pyi" PATTERN "py.typed" PATTERN "_peer_names.txt"
          PATTERN "__pycache__" EXCLUDE)
  # The demo's data, with their credit.
  install(FILES "${CMAKE_SOURCE_DIR}/examples/data/digits.csv.gz"
                "${CMAKE_SOURCE_DIR}/examples/data/kjv-excerpt.txt.gz"
          DESTINATION "${LAMINA_PYTHON_DIR}/demo")
  install(FILES "${CMAKE_SOURCE_DIR}/examples/data/README.md"
          DESTINATION "${LAMINA_PYTHON_DIR}/demo" RENAME data.md)
  foreach(file IN LISTS LAMINA_GEN_python)
    # gen/python/lamina/x.pyi lands as lamina/x.pyi
    file(RELATIVE_PATH place "${LAMINA_GEN_DIR}" "${file}")
    string(REGEX REPLACE "^(python/)?(lamina/)?" "" place "${place}")
    get_filename_component(folder "${place}" DIRECTORY)
    install(FILES "${file}" DESTINATION "${LAMINA_PYTHON_DIR}/${folder}")
  endforeach()
endif()
