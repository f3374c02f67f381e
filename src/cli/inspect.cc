// pagoda inspect: what a model file holds.

#include <fmt/format.h>

#include <iostream>
#include <map>

#include "base/utf8.h"
#include "cli/common.h"
#include "cli/subcommands.h"
#include "model/kv_store.h"
#include "tensor/dtype.h"

namespace pagoda::cli {

namespace {

constexpr size_t kShownItems = 8;
constexpr size_t kShownText = 120;

struct InspectOptions {
  std::string path;
  bool json = false;
  bool tensors = false;
};

struct TypeTotal {
  uint64_t count = 0, bytes = 0, elements = 0;
};

void write_array(JsonWriter& w, const GgufArray& array, size_t limit) {
  w.begin_array();
  std::visit(
      [&](const auto& items) {
        for (size_t i = 0; i < items.size() && i < limit; ++i) {
          using Item = std::decay_t<decltype(items[i])>;
          if constexpr (std::is_same_v<Item, GgufArray>) {
            write_array(w, items[i], limit);
          } else if constexpr (std::is_same_v<Item, uint8_t>) {
            w.value(items[i] != 0);
          } else {
            w.value(items[i]);
          }
        }
      },
      array.values);
  w.end_array();
}

void write_value(JsonWriter& w, const GgufValue& value) {
  std::visit(
      [&](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, GgufArray>) {
          w.begin_object();
          w.field("type", gguf_value_type_name(v.element_type));
          w.field("length", static_cast<uint64_t>(v.size()));
          w.key("first");
          write_array(w, v, kShownItems);
          w.end_object();
        } else if constexpr (std::is_same_v<T, std::string>) {
          w.value(std::string_view(v));
        } else {
          w.value(v);
        }
      },
      value.data);
}

std::map<std::string, TypeTotal> totals_by_type(const GgufFile& file) {
  std::map<std::string, TypeTotal> totals;
  for (const GgufTensorInfo& t : file.tensors()) {
    TypeTotal& total = totals[std::string(traits(t.dtype).name)];
    ++total.count;
    total.bytes += t.num_bytes;
    total.elements += t.num_elements();
  }
  for (const GgufUnsupportedTensor& t : file.unsupported_tensors()) ++totals[std::string(gguf_type_name(t.gguf_type_id))].count;
  return totals;
}

void write_runtime(JsonWriter& w, const GgufFile& file) {
  const auto config = model_config_from_gguf(file);
  w.key("runs");
  w.value(config.ok());
  if (!config.ok()) {
    w.field("why_not", config.status().message());
    return;
  }
  w.key("kv_bytes_per_token");
  w.begin_object();
  w.field("f16", kv_bytes_per_token(*config, KvType::kF16));
  w.field("bf16", kv_bytes_per_token(*config, KvType::kBF16));
  w.field("f32", kv_bytes_per_token(*config, KvType::kF32));
  w.end_object();
  if (const auto packed = packed_weight_bytes(file); packed.ok()) w.field("packed_weight_bytes", *packed);
}

std::string to_json(const GgufFile& file) {
  uint64_t parameters = 0;
  JsonWriter w;
  w.begin_object();
  w.field("path", std::string_view(file.path()));
  w.field("gguf_version", static_cast<uint64_t>(file.version()));
  w.field("file_bytes", file.total_file_bytes());
  w.key("metadata");
  w.begin_object();
  for (const auto& [key, value] : file.metadata()) {
    w.key(key);
    write_value(w, value);
  }
  w.end_object();
  w.key("types");
  w.begin_object();
  for (const auto& [name, total] : totals_by_type(file)) {
    w.key(name);
    w.begin_object();
    w.field("tensors", total.count);
    w.field("bytes", total.bytes);
    w.end_object();
    parameters += total.elements;
  }
  w.end_object();
  w.field("parameters", parameters);
  write_runtime(w, file);
  w.key("tensors");
  w.begin_array();
  for (const GgufTensorInfo& t : file.tensors()) {
    w.begin_object();
    w.field("name", std::string_view(t.name));
    w.field("type", traits(t.dtype).name);
    w.key("shape");
    w.begin_array();
    for (const uint64_t d : t.dims) w.value(d);
    w.end_array();
    w.field("bytes", t.num_bytes);
    w.end_object();
  }
  w.end_array();
  w.end_object();
  return w.take();
}

void print_tensors(const GgufFile& file) {
  std::cout << "\nTensors\n";
  for (const GgufTensorInfo& t : file.tensors()) {
    std::string shape;
    for (const uint64_t d : t.dims) shape += (shape.empty() ? "" : " x ") + std::to_string(d);
    std::cout << fmt::format("  {:<34} {:<8} {:<20} {:>12}\n", t.name, traits(t.dtype).name, shape, format_bytes(t.num_bytes));
  }
  for (const GgufUnsupportedTensor& t : file.unsupported_tensors()) {
    std::cout << fmt::format("  {:<34} {:<8} (not supported)\n", t.name, gguf_type_name(t.gguf_type_id));
  }
}

void print_text(const GgufFile& file, bool with_tensors) {
  std::cout << fmt::format("{}\nGGUF version {}, {}, {} tensors\n\nMetadata\n", file.path(), file.version(),
                           format_bytes(file.total_file_bytes()), file.tensors().size());
  const std::string* chat_template = nullptr;
  for (const auto& [key, value] : file.metadata()) {
    if (key == "tokenizer.chat_template") {
      chat_template = std::get_if<std::string>(&value.data);
      continue;
    }
    JsonWriter w;
    write_value(w, value);
    std::string text = w.take();
    if (text.size() > kShownText) text = text.substr(0, complete_utf8_prefix(std::string_view(text).substr(0, kShownText))) + "...";
    std::cout << fmt::format("  {:<44} {}\n", key, text);
  }
  uint64_t parameters = 0;
  std::cout << "\nTypes\n";
  for (const auto& [name, total] : totals_by_type(file)) {
    std::cout << fmt::format("  {:<8} {:>5} tensors {:>12}\n", name, total.count, format_bytes(total.bytes));
    parameters += total.elements;
  }
  std::cout << fmt::format("\nParameters       {:.1f} M\n", static_cast<double>(parameters) / 1e6);
  const auto config = model_config_from_gguf(file);
  if (config.ok()) {
    std::cout << fmt::format("KV cache         {} a token (16-bit)\n", format_bytes(kv_bytes_per_token(*config, KvType::kF16)));
  } else {
    std::cout << "Cannot be run    " << config.status().message() << "\n";
  }
  if (chat_template != nullptr) std::cout << "\nChat template\n" << *chat_template << "\n";
  if (with_tensors) print_tensors(file);
}

}  // namespace

void add_inspect(CLI::App& program, Action& action) {
  auto o = std::make_shared<InspectOptions>();
  CLI::App* app = program.add_subcommand("inspect", "show metadata, tensors and memory needs of a model file");
  app->add_option("file", o->path, "model file")->required();
  app->add_flag("--tensors", o->tensors, "list every tensor");
  app->add_flag("--json", o->json, "everything as one JSON object");
  app->callback([o, &action] {
    action = [o] {
      GgufFile::Options options;
      options.unknown_types = GgufUnknownTypes::kList;
      const auto file = GgufFile::open(o->path, options);
      if (!file.ok()) return report_failure(file.status(), o->json);
      if (o->json) {
        std::cout << to_json(*file) << std::endl;
      } else {
        print_text(*file, o->tensors);
      }
      return 0;
    };
  });
}

}  // namespace pagoda::cli
