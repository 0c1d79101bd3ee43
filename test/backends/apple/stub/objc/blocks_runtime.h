// The place where clang looks for the declarations of blocks over gcc's Objective-C runtime.
#include <Block.h>
