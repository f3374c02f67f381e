#pragma once
// What this machine offers: instruction sets, processors this process may use, memory it may take.
// Read once in Runtime::create; tests pass their own values.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/isa.h"
#include "pagoda/status.h"

namespace pagoda {

inline constexpr Isa kAllIsas[] = {Isa::kReference, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vnni, Isa::kAvx512Bf16};

std::string_view isa_name(Isa isa);                       ///< "reference", "avx2", "avx512", "avx512vnni", "avx512bf16"
std::optional<Isa> isa_from_name(std::string_view name);
/// The highest level that the CPU and the operating system support.
Isa detect_isa();
/// `forced` is the value of PAGODA_ISA (empty: none). kInvalidArgument for an unknown name or one the CPU lacks.
Result<Isa> choose_isa(std::string_view forced);

/// Processors this process may run on, by affinity mask.
std::vector<int> allowed_cpus();

/// Where the control-group and memory files are; tests point it at a fixture folder.
struct SystemPaths {
  std::string cgroup_root = "/sys/fs/cgroup";
  std::string proc_root = "/proc";
};

/// Whole CPUs that the control group's quota allows (v2 cpu.max or v1 cpu.cfs_*), rounded down, at least 1; nullopt: no quota.
std::optional<int> cgroup_cpu_limit(const SystemPaths& paths = {});
/// Bytes left below the control group's memory limit; nullopt: no limit.
std::optional<uint64_t> cgroup_free_memory(const SystemPaths& paths = {});
/// MemAvailable of the machine, or what the control group leaves, whichever is less.
uint64_t available_memory_bytes(const SystemPaths& paths = {});
/// Threads to compute with: processors allowed by affinity, capped by the quota; hardware threads of one core count once.
int default_num_threads(const SystemPaths& paths = {});

/// Resident set of this process now and at its peak, in bytes.
uint64_t resident_bytes();
uint64_t peak_resident_bytes();

}  // namespace pagoda
