// backends/apple/retained.h - owns a reference to an Objective-C object. Without ARC (not available
// on Linux), methods return autoreleased objects; a Retained keeps them beyond the pool of the
// entry (errors.h).
#pragma once

#import <Foundation/Foundation.h>

#include <utility>

namespace mlc::apple {

// One reference: Retained<MLModel*>.
template <class T>
class Retained {
 public:
  Retained() = default;
  explicit Retained(T object) : object_([object retain]) {}
  // Takes over a reference returned by alloc, new or copy.
  static Retained Adopt(T object) {
    Retained adopted;
    adopted.object_ = object;
    return adopted;
  }
  Retained(const Retained& other) : Retained(other.object_) {}
  Retained(Retained&& other) noexcept : object_(std::exchange(other.object_, nil)) {}
  Retained& operator=(Retained other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Retained() { [object_ release]; }

  T get() const { return object_; }
  explicit operator bool() const { return object_ != nil; }

 private:
  T object_ = nil;
};

}  // namespace mlc::apple
