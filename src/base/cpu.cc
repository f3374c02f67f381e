#include "base/cpu.h"

#include <cpuid.h>
#include <immintrin.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <set>
#include <sstream>

namespace pagoda {

namespace {

constexpr std::string_view kIsaNames[] = {"reference", "avx2", "avx512", "avx512vnni", "avx512bf16"};

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

std::optional<uint64_t> parse_uint(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::optional<uint64_t> read_uint(const std::string& path) {
  const auto text = read_text(path);
  return text ? parse_uint(*text) : std::nullopt;
}

// Path of this process below a cgroup hierarchy: "0::/x" for version 2, "n:memory:/x" for version 1.
std::string cgroup_path(const SystemPaths& paths, std::string_view controller) {
  std::istringstream lines(read_text(paths.proc_root + "/self/cgroup").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool matches = controller.empty() ? names == ",," : names.find("," + std::string(controller) + ",") != std::string::npos;
    if (matches) return line.substr(second + 1);
  }
  return "";
}

// Calls visit(folder) for the process's cgroup and each parent up to the root: a limit may sit on any level.
template <typename Visit>
void for_each_level(const std::string& root, std::string relative, Visit visit) {
  for (;;) {
    visit(root + relative);
    if (relative.empty() || relative == "/") return;
    const size_t slash = relative.rfind('/');
    relative.resize(slash == std::string::npos ? 0 : slash);
  }
}

template <typename T>
void keep_min(std::optional<T>& best, std::optional<T> value) {
  if (value && (!best || *value < *best)) best = value;
}

std::optional<double> cpu_quota_v2(const std::string& folder) {
  std::istringstream in(read_text(folder + "/cpu.max").value_or(""));
  std::string quota;
  double period = 0;
  if (!(in >> quota >> period) || quota == "max" || period <= 0) return std::nullopt;
  const auto us = parse_uint(quota);
  if (!us) return std::nullopt;
  return static_cast<double>(*us) / period;
}

std::optional<double> cpu_quota_v1(const std::string& folder) {
  const auto quota = read_uint(folder + "/cpu.cfs_quota_us");
  const auto period = read_uint(folder + "/cpu.cfs_period_us");
  if (!quota || !period || *period == 0) return std::nullopt;  // "-1" (no quota) is no unsigned number
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<uint64_t> free_memory_at(const std::string& limit_file, const std::string& used_file) {
  const auto limit = read_uint(limit_file);
  const auto used = read_uint(used_file);
  // Version 1 spells "no limit" as a huge number.
  if (!limit || !used || *limit > (uint64_t{1} << 60)) return std::nullopt;
  return *limit > *used ? *limit - *used : 0;
}

uint64_t status_kib(const std::string& key) {
  std::istringstream lines(read_text("/proc/self/status").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(key, 0) != 0) continue;
    uint64_t kib = 0;
    std::istringstream(line.substr(key.size())) >> kib;
    return kib * 1024;
  }
  return 0;
}

bool os_saves_avx512() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 27))) return false;
  unsigned low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & 0xE6u) == 0xE6u;  // XMM, YMM, opmask and both ZMM halves
}

}  // namespace

std::string_view isa_name(Isa isa) { return kIsaNames[static_cast<int>(isa)]; }

std::optional<Isa> isa_from_name(std::string_view name) {
  for (const Isa isa : kAllIsas) {
    if (isa_name(isa) == name) return isa;
  }
  return std::nullopt;
}

Isa detect_isa() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return Isa::kReference;
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & (1u << 29))) return Isa::kReference;  // F16C
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && os_saves_avx512();
  if (!avx512) return Isa::kAvx2;
  if (!__builtin_cpu_supports("avx512vnni")) return Isa::kAvx512;
  unsigned a1 = 0, b1, c1, d1;
  if (!__get_cpuid_count(7, 1, &a1, &b1, &c1, &d1)) return Isa::kAvx512Vnni;
  return (a1 & (1u << 5)) ? Isa::kAvx512Bf16 : Isa::kAvx512Vnni;
}

Result<Isa> choose_isa(std::string_view forced) {
  const Isa best = detect_isa();
  if (forced.empty()) return best;
  const auto wanted = isa_from_name(forced);
  if (!wanted) {
    return invalid_argument("PAGODA_ISA=" + std::string(forced) +
                            " is not one of reference, avx2, avx512, avx512vnni, avx512bf16");
  }
  if (*wanted > best) {
    return invalid_argument("PAGODA_ISA=" + std::string(forced) + " but this CPU supports at most " +
                            std::string(isa_name(best)));
  }
  return *wanted;
}

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &set)) cpus.push_back(i);
    }
  } else {  // more processors than the fixed set holds
    for (int i = 0; i < static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); ++i) cpus.push_back(i);
  }
  return cpus;
}

std::optional<int> cgroup_cpu_limit(const SystemPaths& paths) {
  std::optional<double> cpus;
  for_each_level(paths.cgroup_root, cgroup_path(paths, ""), [&](const std::string& f) { keep_min(cpus, cpu_quota_v2(f)); });
  for_each_level(paths.cgroup_root + "/cpu", cgroup_path(paths, "cpu"),
                 [&](const std::string& f) { keep_min(cpus, cpu_quota_v1(f)); });
  if (!cpus) return std::nullopt;
  return std::max(1, static_cast<int>(std::min(*cpus, 4096.0)));
}

std::optional<uint64_t> cgroup_free_memory(const SystemPaths& paths) {
  std::optional<uint64_t> bytes;
  for_each_level(paths.cgroup_root, cgroup_path(paths, ""), [&](const std::string& f) {
    keep_min(bytes, free_memory_at(f + "/memory.max", f + "/memory.current"));
  });
  for_each_level(paths.cgroup_root + "/memory", cgroup_path(paths, "memory"), [&](const std::string& f) {
    keep_min(bytes, free_memory_at(f + "/memory.limit_in_bytes", f + "/memory.usage_in_bytes"));
  });
  return bytes;
}

uint64_t available_memory_bytes(const SystemPaths& paths) {
  uint64_t available = std::numeric_limits<uint64_t>::max();
  std::istringstream lines(read_text(paths.proc_root + "/meminfo").value_or(""));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("MemAvailable:", 0) != 0) continue;
    uint64_t kib = 0;
    std::istringstream(line.substr(13)) >> kib;
    available = kib * 1024;
  }
  return std::min(available, cgroup_free_memory(paths).value_or(available));
}

int default_num_threads(const SystemPaths& paths) {
  const std::vector<int> cpus = allowed_cpus();
  std::set<std::string> cores;  // hardware threads of one core share its vector units: one compute thread each
  for (const int cpu : cpus) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    const auto siblings = read_text(folder + "thread_siblings_list");
    cores.insert(siblings ? *siblings : std::to_string(cpu));
  }
  int threads = std::max<int>(1, static_cast<int>(cores.size()));
  if (const auto limit = cgroup_cpu_limit(paths)) threads = std::min(threads, *limit);
  return threads;
}

uint64_t resident_bytes() { return status_kib("VmRSS:"); }
uint64_t peak_resident_bytes() { return status_kib("VmHWM:"); }

}  // namespace pagoda
