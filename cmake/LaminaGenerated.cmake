# Code that opgen writes from ops/ at build time. The list of files is asked at configure time; a
# file is rewritten only when its text changes, so that an edit in ops/ compiles what it touches.

set(LAMINA_GEN_DIR "${CMAKE_BINARY_DIR}/gen")
file(GLOB_RECURSE lamina_gen_inputs CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/ops/*.yaml"
     "${CMAKE_SOURCE_DIR}/opgen/*.py" "${CMAKE_SOURCE_DIR}/opgen/*.j2")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${lamina_gen_inputs})

execute_process(
  COMMAND "${Python_EXECUTABLE}" -m opgen --list-outputs
  WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}"
  OUTPUT_VARIABLE lamina_gen_list OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE lamina_gen_failed)
if(lamina_gen_failed)
  message(FATAL_ERROR "opgen could not read the op list in ops/ (see above)")
endif()
foreach(group IN ITEMS lamina border header python)
  set(LAMINA_GEN_${group})
endforeach()
string(REPLACE "\n" ";" lamina_gen_list "${lamina_gen_list}")
set(lamina_gen_files)
foreach(line IN LISTS lamina_gen_list)
  if(line MATCHES "^([a-z]+) (.+)$")
    list(APPEND LAMINA_GEN_${CMAKE_MATCH_1} "${LAMINA_GEN_DIR}/${CMAKE_MATCH_2}")
    list(APPEND lamina_gen_files "${LAMINA_GEN_DIR}/${CMAKE_MATCH_2}")
  endif()
endforeach()

# A stamp, because files whose text did not change keep their time.
add_custom_command(
  OUTPUT "${CMAKE_BINARY_DIR}/gen.stamp"
  BYPRODUCTS ${lamina_gen_files}
  COMMAND "${Python_EXECUTABLE}" -m opgen --out "${LAMINA_GEN_DIR}"
  COMMAND "${CMAKE_COMMAND}" -E touch "${CMAKE_BINARY_DIR}/gen.stamp"
  DEPENDS ${lamina_gen_inputs}
  WORKING_DIRECTORY "${CMAKE_SOURCE_DIR}"
  COMMENT "Writing code from ops/"
  VERBATIM)
add_custom_target(lamina_generated DEPENDS "${CMAKE_BINARY_DIR}/gen.stamp")
