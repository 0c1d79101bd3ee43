// sys/sysctl.h - Apple's interface, which Linux lacks.
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C"
#endif
    int
    sysctlbyname(const char* name, void* old_value, size_t* old_size, void* new_value,
                 size_t new_size);
