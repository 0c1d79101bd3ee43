# Run by cpack after the files of all packages were installed: adds what Debian's policy requires of each package.
if(NOT CPACK_GENERATOR STREQUAL DEB)
  return()
endif()
if(CPACK_MLC_SYSROOT)
  set(ENV{DEB_HOST_ARCH} ${CPACK_DEBIAN_PACKAGE_ARCHITECTURE})  # dpkg-shlibdeps then reads its programs
endif()
string(SUBSTRING ${CPACK_MLC_VERSION_DATE} 0 4 year)
# gzip -n leaves out the time.
set(compress gzip -9nf)
execute_process(COMMAND date -u -R -d ${CPACK_MLC_VERSION_DATE} OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
foreach(component ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${component} upper)
  set(name ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(root ${CPACK_TEMPORARY_DIRECTORY}/${component}/usr/share)
  file(GLOB pages ${root}/man/man1/*.1)
  if(pages)
    execute_process(COMMAND ${compress} ${pages} COMMAND_ERROR_IS_FATAL ANY)
  endif()
  file(WRITE ${root}/doc/${name}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: mlc

Files: *
Copyright: ${year} the authors of mlc
License: Apache-2.0

License: Apache-2.0
 The licence is in /usr/share/common-licenses/Apache-2.0.
")
  file(WRITE ${root}/doc/${name}/changelog "mlc (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}. CHANGELOG.md in the sources lists all changes.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  execute_process(COMMAND ${compress} ${root}/doc/${name}/changelog COMMAND_ERROR_IS_FATAL ANY)
endforeach()
