# What cpack makes in a build folder: packages for Debian (cpack -G DEB) and a tarball that needs glibc alone (cpack -G External).
set(CPACK_GENERATOR DEB External)
set(CPACK_PACKAGE_CONTACT "mlc maintainers <maintainers@mlc.invalid>" CACHE STRING "Maintainer of the packages, with an address")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)

set(CPACK_COMPONENTS_ALL mlc mlc-run libmlc libmlc-dev)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
if(CMAKE_SYSROOT)
  foreach(folder usr/lib lib)
    list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_SYSROOT}/${folder}/${CMAKE_LIBRARY_ARCHITECTURE})
  endforeach()
endif()
# Copyright, changelogs, and compressed man pages.
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/scripts/packaging/debian_files.cmake)
set(CPACK_MLC_SOURCE_DIR ${CMAKE_SOURCE_DIR})
set(CPACK_MLC_BINARY_DIR ${CMAKE_BINARY_DIR})
set(CPACK_MLC_SYSROOT "${CMAKE_SYSROOT}")
set(CPACK_MLC_VERSION_DATE "${version_date}")
# CPack's own forms of these call ldconfig in scripts, which Debian replaced by triggers.
file(CONFIGURE OUTPUT packaging/shlibs CONTENT "libmlc ${major} libmlc${major} (>= ${PROJECT_VERSION})\n")
file(CONFIGURE OUTPUT packaging/triggers CONTENT "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBMLC_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/packaging/shlibs ${CMAKE_BINARY_DIR}/packaging/triggers)

set(about "mlc compiles trained networks from ONNX files, GGUF files and Hugging Face
folders of safetensors into Core ML packages for Apple devices.")
# mlc_debian_package(COMPONENT NAME SECTION SUMMARY DESCRIPTION)
macro(mlc_debian_package component name section summary description)
  string(TOUPPER ${component} upper)
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
  # The first line of a description is its summary.
  set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${about}\n\n${description}")
endmacro()
mlc_debian_package(mlc mlc science "ahead-of-time compiler of models for Core ML"
"This package contains the compiler, which also verifies, runs, inspects and
compresses models and packages, its man pages, and a CMake function that
compiles models while a project is built.")
mlc_debian_package(mlc-run mlc-run science "runner of models and Core ML packages"
"This package contains the runner alone, which executes models and packages
on the CPU, and times them.")
mlc_debian_package(libmlc libmlc${major} libs "compiler of models for Core ML (library)"
"This package contains the shared library.")
mlc_debian_package(libmlc-dev libmlc-dev libdevel "compiler of models for Core ML (development files)"
"This package contains the C header, the static library, and files for
pkg-config and CMake.")
# mlc-run has the page of `mlc run`. libcurl is loaded when a cache on a server is used.
set(CPACK_DEBIAN_MLC_PACKAGE_RECOMMENDS "mlc-run, libcurl4, ca-certificates")
set(CPACK_DEBIAN_LIBMLC_PACKAGE_RECOMMENDS "libcurl4, ca-certificates")
set(CPACK_DEBIAN_LIBMLC-DEV_PACKAGE_DEPENDS "libmlc${major} (= ${PROJECT_VERSION})")
# Programs that link the static library need these.
set(CPACK_DEBIAN_LIBMLC-DEV_PACKAGE_SUGGESTS "libonnx-dev, libprotobuf-dev, libdnnl-dev, zlib1g-dev, libfmt-dev, libxxhash-dev, libssl-dev, libpcre2-dev, libonig-dev, libutf8proc-dev, libpng-dev, libturbojpeg0-dev")

# The tarball is installed by its own script.
set(CPACK_EXTERNAL_PACKAGE_SCRIPT ${CMAKE_SOURCE_DIR}/scripts/packaging/tarball.cmake)
set(CPACK_EXTERNAL_ENABLE_STAGING OFF)
include(CPack)
