# Toolchain file: Debian's compiler for arm64, with the libraries of scripts/packaging/sysroot. A program that was built can run here
# if qemu is installed.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../../build-arm64/sysroot)
cmake_path(NORMAL_PATH CMAKE_SYSROOT)
set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
# Programs are those of this machine, also where packages look for them among their own.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
find_program(MLC_QEMU qemu-aarch64-static)
if(MLC_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${MLC_QEMU} -L ${CMAKE_SYSROOT})
endif()
