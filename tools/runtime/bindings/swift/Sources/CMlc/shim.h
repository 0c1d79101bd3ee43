// shim.h - the installed header of libmlc, which pkg-config finds.
#include <mlc.h>
