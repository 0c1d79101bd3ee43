# Run by cpack -G External.
execute_process(COMMAND ${CPACK_MLC_SOURCE_DIR}/scripts/packaging/tarball ${CPACK_MLC_BINARY_DIR} ${CPACK_PACKAGE_DIRECTORY}
                COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE said ECHO_OUTPUT_VARIABLE)
string(REGEX MATCH "^[^ \n]+" file "${said}")
set(CPACK_EXTERNAL_BUILT_PACKAGES ${CPACK_PACKAGE_DIRECTORY}/${file})
