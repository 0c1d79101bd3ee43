// lib/engine/team.h - short loops on the threads that oneDNN has anyway.
#pragma once

#include <cstdint>
#include <functional>

namespace mlc {

// Calls fn(i), which does not throw, for every i in [0, count), each once, on up to `threads`
// threads, the caller's among them: on those of OpenMP, which wait for the next loop for a while;
// where there is no OpenMP, on the caller's alone.
void OnTeam(int64_t count, int threads, const std::function<void(int64_t)>& fn);

}  // namespace mlc
