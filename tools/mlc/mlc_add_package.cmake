# mlc_add_package(NAME SOURCE model [OPTIONS option...] [DEPENDS file...] [FOLDER folder] [ALL]) - adds a target that compiles a model
# into FOLDER/NAME.mlpackage (default: the current binary folder), with its manifest, as an app builds with it.
#
#   find_package(mlc REQUIRED COMPONENTS tools)
#   mlc_add_package(digits SOURCE models/digits.onnx OPTIONS --precision fp16 --labels models/digits.txt
#                   DEPENDS models/digits.txt)
#   add_dependencies(app digits)
#
# Paths are relative to the current source folder, also those in options. DEPENDS names further files that mlc reads: external data,
# labels, constants. The target property MLC_PACKAGE is the path of the package. ALL adds the target to the default build. Everything
# is built again when mlc itself changes.
include_guard(GLOBAL)

find_program(MLC_EXECUTABLE mlc HINTS ${CMAKE_CURRENT_LIST_DIR}/../../../bin ${CMAKE_CURRENT_LIST_DIR}/../../../../bin)

function(mlc_add_package name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ALL" "SOURCE;FOLDER" "OPTIONS;DEPENDS")
  if(NOT MLC_EXECUTABLE)
    message(FATAL_ERROR "mlc_add_package: mlc not found; set MLC_EXECUTABLE to its path")
  endif()
  if(NOT arg_SOURCE OR arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "mlc_add_package(${name}): expected SOURCE model, and OPTIONS, DEPENDS, FOLDER or ALL; "
                        "unexpected: ${arg_UNPARSED_ARGUMENTS}")
  endif()
  cmake_path(ABSOLUTE_PATH arg_SOURCE BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE OUTPUT_VARIABLE source)
  if(NOT EXISTS "${source}")
    message(FATAL_ERROR "mlc_add_package(${name}): \"${source}\" does not exist")
  endif()
  if(NOT arg_FOLDER)
    set(arg_FOLDER ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  cmake_path(ABSOLUTE_PATH arg_FOLDER BASE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} NORMALIZE OUTPUT_VARIABLE folder)
  set(inputs ${source})
  if(IS_DIRECTORY "${source}")  # a Hugging Face folder
    file(GLOB_RECURSE inputs CONFIGURE_DEPENDS "${source}/*")
  endif()
  foreach(file ${arg_DEPENDS})
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    list(APPEND inputs ${file})
  endforeach()
  set(package "${folder}/${name}.mlpackage")
  add_custom_command(
    OUTPUT "${package}/Manifest.json"
    COMMAND ${CMAKE_COMMAND} -E make_directory "${folder}"
    COMMAND ${MLC_EXECUTABLE} compile "${source}" -o "${package}" ${arg_OPTIONS}
    COMMAND ${CMAKE_COMMAND} -E touch "${package}/Manifest.json"  # equal bytes keep their times
    DEPENDS ${inputs} ${MLC_EXECUTABLE}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
    COMMENT "Compiling ${name}.mlpackage"
    VERBATIM)
  set(all)
  if(arg_ALL)
    set(all ALL)
  endif()
  add_custom_target(${name} ${all} DEPENDS "${package}/Manifest.json")
  set_target_properties(${name} PROPERTIES MLC_PACKAGE "${package}")
endfunction()
