// lib/engine/team.h - short loops on the threads that oneDNN has anyway.
#pragma once

#include <cstdint>
#include <functional>

namespace mlc {

// Makes OpenMP's threads before it is asked for so many on this one: std::bad_alloc where there is
// no room for them, in which case it would end the process.
void ExpectTeam(int threads);

// Calls fn(i) for every i in [0, count), each once, on up to `threads` threads, the caller's among
// them: on those of OpenMP, which wait for the next loop for a while; where there is no OpenMP, on
// the caller's alone. When some threw, one of their exceptions is thrown in the end.
void OnTeam(int64_t count, int threads, const std::function<void(int64_t)>& fn);

// Of elements that are computed in a nanosecond each: so few of them are done before threads meet.
inline constexpr int64_t kWorthTeam = 1 << 15;
// Calls fn(first, end) for parts of [0, count), each element once: for all of them where they are
// few.
void OnTeamInParts(int64_t count, int threads, const std::function<void(int64_t, int64_t)>& fn,
                   int64_t element_cost = 1);

}  // namespace mlc
