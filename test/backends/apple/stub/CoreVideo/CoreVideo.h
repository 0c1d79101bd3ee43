// CoreVideo/CoreVideo.h - the part of Core Video that backends/apple uses (test only).
#pragma once

#import <Foundation/Foundation.h>
#include <stdint.h>

typedef uint32_t OSType;
typedef const void* CFTypeRef;
typedef const struct __CFDictionary* CFDictionaryRef;
typedef const struct __CFString* CFStringRef;
typedef const struct __CFAllocator* CFAllocatorRef;
#define kCFAllocatorDefault ((CFAllocatorRef)0)

typedef struct __CVBuffer* CVPixelBufferRef;
typedef int32_t CVReturn;
typedef uint64_t CVPixelBufferLockFlags;
enum { kCVReturnSuccess = 0, kCVReturnError = -6660, kCVReturnInvalidArgument = -6661 };
enum { kCVPixelBufferLock_ReadOnly = 1 };
enum : OSType {
  kCVPixelFormatType_32ARGB = 0x00000020,
  kCVPixelFormatType_32BGRA = 'BGRA',
  kCVPixelFormatType_OneComponent8 = 'L008',
  kCVPixelFormatType_OneComponent16Half = 'L00h',
};

#ifdef __cplusplus
extern "C" {
#endif
extern const CFStringRef kCVPixelBufferIOSurfacePropertiesKey;
CVReturn CVPixelBufferCreate(CFAllocatorRef allocator, size_t width, size_t height, OSType format,
                             CFDictionaryRef attributes, CVPixelBufferRef* made);
CVPixelBufferRef CVPixelBufferRetain(CVPixelBufferRef buffer);
void CVPixelBufferRelease(CVPixelBufferRef buffer);
CVReturn CVPixelBufferLockBaseAddress(CVPixelBufferRef buffer, CVPixelBufferLockFlags flags);
CVReturn CVPixelBufferUnlockBaseAddress(CVPixelBufferRef buffer, CVPixelBufferLockFlags flags);
void* CVPixelBufferGetBaseAddress(CVPixelBufferRef buffer);
size_t CVPixelBufferGetBytesPerRow(CVPixelBufferRef buffer);
size_t CVPixelBufferGetWidth(CVPixelBufferRef buffer);
size_t CVPixelBufferGetHeight(CVPixelBufferRef buffer);
OSType CVPixelBufferGetPixelFormatType(CVPixelBufferRef buffer);
#ifdef __cplusplus
}
#endif
