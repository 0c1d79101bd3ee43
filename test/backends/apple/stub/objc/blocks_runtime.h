// The header in which clang expects the declarations of blocks for gcc's Objective-C runtime.
#include <Block.h>
