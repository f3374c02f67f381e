#include "formats/gguf/gguf_shards.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <unordered_set>

namespace pagoda {
namespace {

struct ShardName {
  std::string prefix;
  uint64_t number = 0;  // from 1
  uint64_t count = 0;
};

constexpr size_t kSuffixBytes = sizeof("-00001-of-00003.gguf") - 1;

std::optional<uint64_t> five_digits(std::string_view text) {
  uint64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(c - '0');
  }
  return value;
}

std::optional<ShardName> parse_shard_name(const std::string& path) {
  if (path.size() < kSuffixBytes) return std::nullopt;
  const std::string_view suffix = std::string_view(path).substr(path.size() - kSuffixBytes);
  const auto number = five_digits(suffix.substr(1, 5));
  const auto count = five_digits(suffix.substr(10, 5));
  if (suffix[0] != '-' || suffix.substr(6, 4) != "-of-" || suffix.substr(15) != ".gguf" || !number || !count) {
    return std::nullopt;
  }
  return ShardName{path.substr(0, path.size() - kSuffixBytes), *number, *count};
}

std::string shard_path(const std::string& prefix, uint64_t number, uint64_t count) {
  char suffix[64];
  std::snprintf(suffix, sizeof suffix, "-%05u-of-%05u.gguf", static_cast<unsigned>(number), static_cast<unsigned>(count));
  return prefix + suffix;
}

// The file that stands for the only model in `folder`.
Result<std::string> find_model_in_folder(const std::string& folder) {
  std::set<std::string> models;  // a split model once, by its first shard's path
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() != ".gguf") continue;
    const std::string path = it->path().string();
    const auto name = parse_shard_name(path);
    models.insert(name ? shard_path(name->prefix, 1, name->count) : path);
  }
  if (error) return internal_error(folder + ": cannot list the folder: " + error.message());
  if (models.empty()) return not_found(folder + ": the folder holds no .gguf file");
  if (models.size() > 1) {
    return invalid_argument(folder + ": the folder holds " + std::to_string(models.size()) +
                            " models, among them " + *models.begin() + " and " + *models.rbegin() + "; name one file");
  }
  return *models.begin();
}

Result<std::optional<uint64_t>> split_value(const ParsedGguf& parsed, const std::string& path, std::string_view key) {
  for (const auto& [name, value] : parsed.metadata) {
    if (name != key) continue;
    if (const auto* u = std::get_if<uint64_t>(&value.data)) return std::optional<uint64_t>(*u);
    if (const auto* i = std::get_if<int64_t>(&value.data); i != nullptr && *i >= 0) {
      return std::optional<uint64_t>(static_cast<uint64_t>(*i));
    }
    return data_loss(path + ": metadata '" + std::string(key) + "' must be an integer that is not negative");
  }
  return std::optional<uint64_t>();
}

Status check_split_value(const ParsedGguf& parsed, const std::string& path, std::string_view key, uint64_t wanted) {
  PAGODA_ASSIGN_OR_RETURN(const auto found, split_value(parsed, path, key));
  if (found == wanted) return {};
  return data_loss(path + ": metadata '" + std::string(key) + "' is " +
                   (found ? std::to_string(*found) : std::string("absent")) + " but should be " +
                   std::to_string(wanted) + "; the file belongs to another split or was renamed");
}

// Joins shard `index` to `out`, renumbering its tensors.
Status append_shard(GgufShards& out, ParsedGguf parsed, std::unique_ptr<ByteSource> source,
                    std::unordered_set<std::string>& names) {
  const auto index = static_cast<uint32_t>(out.sources.size());
  const std::string path = source->name();
  if (index == 0) {
    out.joined.version = parsed.version;
    out.joined.metadata = std::move(parsed.metadata);
  }
  const auto twice = [&](const std::string& name) {
    return data_loss(path + ": tensor '" + name + "' is also in an earlier shard");
  };
  for (auto& tensor : parsed.tensors) {
    if (!names.insert(tensor.name).second) return twice(tensor.name);
    tensor.shard = index;
    out.joined.tensors.push_back(std::move(tensor));
  }
  for (auto& tensor : parsed.unsupported) {
    if (!names.insert(tensor.name).second) return twice(tensor.name);
    out.joined.unsupported.push_back(std::move(tensor));
  }
  out.sources.push_back(std::move(source));
  return {};
}

Result<GgufShards> open_split(const ShardName& name, const GgufFile::Options& options) {
  GgufShards out;
  std::unordered_set<std::string> names;
  std::optional<uint64_t> num_tensors;
  for (uint64_t i = 0; i < name.count; ++i) {
    const std::string path = shard_path(name.prefix, i + 1, name.count);
    auto source = open_file_source(path);
    if (!source.ok()) {
      return source.status().with_context("shard " + std::to_string(i + 1) + " of " + std::to_string(name.count) +
                                          " of a split model");
    }
    PAGODA_ASSIGN_OR_RETURN(ParsedGguf parsed, parse_gguf(**source, options));
    PAGODA_RETURN_IF_ERROR(check_split_value(parsed, path, "split.count", name.count));
    PAGODA_RETURN_IF_ERROR(check_split_value(parsed, path, "split.no", i));
    if (i == 0) {
      PAGODA_ASSIGN_OR_RETURN(num_tensors, split_value(parsed, path, "split.tensors.count"));
    }
    if (num_tensors) PAGODA_RETURN_IF_ERROR(check_split_value(parsed, path, "split.tensors.count", *num_tensors));
    PAGODA_RETURN_IF_ERROR(append_shard(out, std::move(parsed), std::move(*source), names));
  }
  const uint64_t found = out.joined.tensors.size() + out.joined.unsupported.size();
  if (!num_tensors || *num_tensors != found) {
    return data_loss(out.sources[0]->name() + ": metadata 'split.tensors.count' is " +
                     (num_tensors ? std::to_string(*num_tensors) : std::string("absent")) + " but the shards hold " +
                     std::to_string(found) + " tensors; a shard is damaged or belongs to another split");
  }
  return out;
}

}  // namespace

Result<GgufShards> open_gguf_shards(const std::string& path, const GgufFile::Options& options) {
  std::string file = path;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    PAGODA_ASSIGN_OR_RETURN(file, find_model_in_folder(path));
  }
  PAGODA_ASSIGN_OR_RETURN(auto source, open_file_source(file));
  PAGODA_ASSIGN_OR_RETURN(ParsedGguf parsed, parse_gguf(*source, options));
  PAGODA_ASSIGN_OR_RETURN(const auto count, split_value(parsed, file, "split.count"));
  if (!count || *count <= 1) {
    GgufShards out;
    std::unordered_set<std::string> names;
    PAGODA_RETURN_IF_ERROR(append_shard(out, std::move(parsed), std::move(source), names));
    return out;
  }
  if (*count > options.limits.max_shards) {
    return data_loss(file + ": metadata 'split.count' " + std::to_string(*count) + " is over the limit of " +
                     std::to_string(options.limits.max_shards));
  }
  const auto name = parse_shard_name(file);
  if (!name) {
    return invalid_argument(file + ": one of " + std::to_string(*count) +
                            " shards, but its name does not end in -0000I-of-0000N.gguf; restore the original names");
  }
  PAGODA_RETURN_IF_ERROR(check_split_value(parsed, file, "split.count", name->count));
  return open_split(*name, options);
}

}  // namespace pagoda
