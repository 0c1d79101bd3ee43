// backends/coreml/arena.h - messages on an arena, in whichever version of protobuf.
#pragma once

namespace mlc {

// `Arena`: google::protobuf::Arena. What CreateMessage did, Create does from version 30 on, which has no other; in older ones
// Create leaves the arena out of the message.
template <class Message, class Arena>
Message* MakeOn(Arena& arena) {
  if constexpr (requires { Arena::template CreateMessage<Message>(&arena); })
    return Arena::template CreateMessage<Message>(&arena);
  else
    return Arena::template Create<Message>(&arena);
}

}  // namespace mlc
