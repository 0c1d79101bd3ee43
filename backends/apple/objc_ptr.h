// backends/apple/objc_ptr.h - owns a reference to an Objective-C object. Without ARC (not available
// on Linux), methods return autoreleased objects; a Retained keeps them beyond the pool of the
// entry (coreml_errors.h).
#pragma once

#import <Foundation/Foundation.h>

#include <utility>

namespace mlc::apple {

// One reference: Retained<MLModel*>.
template <class T>
class ObjcPtr {
 public:
  ObjcPtr() = default;
  explicit ObjcPtr(T object) : object_([object retain]) {}
  // Takes over a reference returned by alloc, new or copy.
  static ObjcPtr Adopt(T object) {
    ObjcPtr adopted;
    adopted.object_ = object;
    return adopted;
  }
  ObjcPtr(const ObjcPtr& other) : ObjcPtr(other.object_) {}
  ObjcPtr(ObjcPtr&& other) noexcept : object_(std::exchange(other.object_, nil)) {}
  ObjcPtr& operator=(ObjcPtr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~ObjcPtr() { [object_ release]; }

  T get() const { return object_; }
  explicit operator bool() const { return object_ != nil; }

 private:
  T object_ = nil;
};

}  // namespace mlc::apple
