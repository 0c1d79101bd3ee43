// backends/coreml/arena.h - creates messages on an arena with any version of protobuf.
#pragma once

namespace mlc::coreml {

// `Arena` is google::protobuf::Arena. Since version 30, Create replaces CreateMessage; in older
// versions, Create does not pass the arena to the message.
template <class Message, class Arena>
Message* MakeOn(Arena& arena) {
  if constexpr (requires { Arena::template CreateMessage<Message>(&arena); })
    return Arena::template CreateMessage<Message>(&arena);
  else
    return Arena::template Create<Message>(&arena);
}

}  // namespace mlc::coreml
