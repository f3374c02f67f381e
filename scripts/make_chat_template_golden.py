"""Writes what llama.cpp's models/templates render under jinja2, set up as transformers sets it up for chat templates.

Usage: python scripts/make_chat_template_golden.py LLAMA_CPP_SOURCE OUT.json
The templates are not ours to copy, so OUT.json stays outside the repository; tests/chat_template/golden_test.cc reads it.
"""
import datetime
import functools
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

NOW = 1735828245  # 2025-01-02 14:30:45 UTC


class Generation(jinja2.ext.Extension):
    """transformers' {% generation %} tag without its index tracking."""
    tags = {"generation"}

    def parse(self, parser):
        lineno = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_support"), [], [], body).set_lineno(lineno)

    @jinja2.pass_eval_context
    def _support(self, context, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def strftime_now(fmt):
    return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).replace(tzinfo=None).strftime(fmt)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


def check_against_transformers():
    """The environment above must be transformers' own; its source is compared where it is installed."""
    try:
        import transformers
        from transformers.utils import chat_template_utils
    except ImportError:
        return "not installed"
    env = chat_template_utils._compile_jinja_template("").environment
    mine = environment()
    assert type(env).__name__ == type(mine).__name__ and env.trim_blocks and env.lstrip_blocks
    assert not env.keep_trailing_newline and set(env.filters) == set(mine.filters) and set(env.globals) == set(mine.globals)
    return transformers.__version__


@functools.lru_cache
def compile_template(template):
    return environment().from_string(template)


def render(template, variables):
    """{"text": ...} or {"error": "syntax" | "render", "message": ... when the template raised it itself}."""
    try:
        compiled = compile_template(template)
    except jinja2.exceptions.TemplateSyntaxError:
        return {"error": "syntax"}
    try:
        return {"text": compiled.render(**variables)}
    except jinja2.exceptions.TemplateError as error:
        if type(error) is jinja2.exceptions.TemplateError:
            return {"error": "render", "message": str(error)}
        return {"error": "render"}
    except Exception:
        return {"error": "render"}


TOOL = {"type": "function", "function": {
    "name": "get_weather", "description": "Weather of a <city> & 'region'.",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "The city, e.g. \"Zürich\""},
        "days": {"type": "integer", "minimum": 1, "default": 3},
        "units": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "scale": {"type": ["number", "null"], "default": 1.0},
        "tags": {"type": "array", "items": {"type": "string"}},
        "where": {"type": "object", "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}},
                  "required": ["lat"]}},
        "required": ["city"]},
    "return": {"type": "string"}}}
OTHER_TOOL = {"type": "function", "function": {"name": "now", "description": "The time.",
                                               "parameters": {"type": "object", "properties": {}}}}


def call(arguments, ident="call12345", name="get_weather"):
    return {"id": ident, "type": "function", "function": {"name": name, "arguments": arguments}}


ARGS = {"city": "Zürich", "days": 2, "scale": 1.0, "tags": ["a", "b"], "flag": True, "none": None}
SYSTEM = {"role": "system", "content": "You are <b>helpful</b>. "}
HELLO = {"role": "user", "content": " Hello, 世界! "}
CONVERSATIONS = {
    "user": [{"role": "user", "content": "Hello"}],
    "system": [SYSTEM, HELLO],
    "multi_turn": [SYSTEM, HELLO, {"role": "assistant", "content": "Hi there.\n"}, {"role": "user", "content": "Bye"}],
    "ends_with_assistant": [HELLO, {"role": "assistant", "content": "Hi there."}],
    "tool_call": [SYSTEM, HELLO, {"role": "assistant", "content": "", "tool_calls": [call(ARGS)]}],
    "tool_result": [HELLO, {"role": "assistant", "content": "", "tool_calls": [call(ARGS)]},
                    {"role": "tool", "tool_call_id": "call12345", "name": "get_weather", "content": "{\"temp\": 21.5}"}],
    "tool_result_text_arguments": [HELLO, {"role": "assistant", "content": None, "tool_calls": [call(json.dumps(ARGS))]},
                                   {"role": "tool", "tool_call_id": "call12345", "name": "get_weather", "content": "21"}],
    "two_tools": [SYSTEM, HELLO, {"role": "assistant", "content": "Looking.", "tool_calls": [call(ARGS), call({}, "call67890", "now")]},
                  {"role": "tool", "tool_call_id": "call12345", "name": "get_weather", "content": "rain"},
                  {"role": "tool", "tool_call_id": "call67890", "name": "now", "content": "12:00"},
                  {"role": "assistant", "content": "It rains."}, {"role": "user", "content": "Thanks"}],
    "thinking": [HELLO, {"role": "assistant", "content": "<think>\nhmm\n</think>\n\nYes.", "reasoning_content": "hmm"},
                 {"role": "user", "content": "Why?"}],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "One "}, {"type": "text", "text": "two"}]}],
    "bad_order": [{"role": "assistant", "content": "First"}, {"role": "assistant", "content": "Second"}],
    "empty": [],
}


def variants():
    for name, messages in CONVERSATIONS.items():
        for tools in (None, [TOOL, OTHER_TOOL]):
            for prompt in (False, True):
                yield f"{name}/{'tools' if tools else 'plain'}/{'prompt' if prompt else 'closed'}", messages, tools, prompt


def real_templates(versions, source, out_path):
    templates = {}
    rows = list(variants())
    for path in sorted((source / "models/templates").glob("*.jinja")):
        text = path.read_bytes().decode("utf-8")
        templates[path.name] = [render(text, {
            "messages": messages, "tools": tools, "documents": None, "add_generation_prompt": prompt,
            "bos_token": "<|bos|>", "eos_token": "<|eos|>"}) for _, messages, tools, prompt in rows]
    out = {"versions": versions, "now": NOW, "templates": templates,
           "variants": [dict(zip(("name", "messages", "tools", "prompt"), row)) for row in rows]}
    out_path.write_text(json.dumps(out, ensure_ascii=False) + "\n")
    print(f"{len(templates)} templates, {len(templates) * len(rows)} renders")


def main():
    versions = {"jinja2": jinja2.__version__, "python": sys.version.split()[0], "transformers": check_against_transformers()}
    print(versions)
    real_templates(versions, pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))


main()
