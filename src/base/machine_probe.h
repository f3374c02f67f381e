#pragma once
// What the machine can do at most: memory bandwidth and INT8 arithmetic, measured in a fraction of a second. Benchmarks
// print their figures beside these.
//
// Thread rule: uses the team; nothing else should run meanwhile.

#include "base/isa.h"
#include "base/thread_team.h"
#include "pagoda/status.h"

namespace pagoda {

/// GB/s of reading 512 MiB once with all threads, best of `repeats`.
Result<double> probe_bandwidth_gbps(ThreadTeam& team, int repeats);

/// 1e9 INT8 multiplications and additions a second over all threads, with the level's dot product instruction; 0 at
/// the reference level, which has none.
double probe_int8_gops(ThreadTeam& team, Isa isa);

}  // namespace pagoda
