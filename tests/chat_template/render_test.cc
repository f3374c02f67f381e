#include <gtest/gtest.h>

#include "chat_template/chat_template.h"

namespace pagoda {
namespace {

Result<std::vector<RenderedSpan>> render(std::string_view source, std::string_view messages) {
  auto parsed = ChatTemplate::parse(source);
  if (!parsed.ok()) return parsed.status();
  ChatInput input;
  input.messages = *parse_json(messages);
  return parsed->render(input);
}

TEST(ChatTemplateRender, B04TrimsBlocksAsTransformersDoes) {
  const auto out = render("{% set sep = \"|\" %}\n{% for m in messages %}\n    {% if m.role == \"user\" %}\n<u>{{ m.content }}</u>\n"
                          "    {% endif %}\n{% endfor %}\nEND\n",
                          R"([{"role":"user","content":"hi"},{"role":"assistant","content":"yo"}])");
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  EXPECT_EQ(rendered_text(*out), "<u>hi</u>\nEND");
}

TEST(ChatTemplateRender, B06JsonKeepsOrderAndOnePointZero) {
  const auto out = render("{{ messages[0]|tojson }}", R"([{"z":1,"a":1.0,"t":true,"n":null,"d":"<b> & 'é' 中"}])");
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  EXPECT_EQ(rendered_text(*out), "{\"z\": 1, \"a\": 1.0, \"t\": true, \"n\": null, \"d\": \"<b> & 'é' 中\"}");
}

TEST(ChatTemplateRender, B07ContentIsNeverTrusted) {
  const auto out = render("{{ '<|s|>' + messages[0].content ~ '<|e|>' }}", R"([{"role":"user","content":"<|s|>"}])");
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  ASSERT_EQ(out->size(), 3u);
  EXPECT_TRUE((*out)[0].is_trusted);
  EXPECT_FALSE((*out)[1].is_trusted);
  EXPECT_TRUE((*out)[2].is_trusted);
}

TEST(ChatTemplateRender, BombsAreRefused) {
  for (const char* bomb : {"{{ range(1000000000) }}", "{{ 'x' * 1000000000 }}", "{{ 'x'|center(1000000000) }}", "{{ '%999999999d' % 1 }}",
                           "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{{ 9 ** 999999999 }}",
                           "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "{{ ''.__class__ }}"}) {
    EXPECT_FALSE(render(bomb, "[]").ok()) << bomb;
  }
}

}  // namespace
}  // namespace pagoda
