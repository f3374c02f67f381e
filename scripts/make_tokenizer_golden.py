#!/usr/bin/env python3
"""Writes tests/tokenizer/golden: texts, small vocabularies, and the ids that the reference libraries give.

Made with tokenizers 0.23.3, sentencepiece 0.2.3 and gguf (any version that has GGUFWriter). Run from the repository's
root. Everything is seeded; a run with the same versions gives the same files.

  texts.bin     the texts, each followed by a NUL byte
  bpe.gguf      one byte-level BPE vocabulary; bpe.<pre-tokenizer>.ids are its ids under that pre-tokenizer
                (bpe_falcon.gguf for bpe.falcon.ids)
  <name>.gguf   further vocabularies, with <name>.ids
  *.ids         per text: number of ids, then the ids, all as LEB128
"""
import io
import json
import os
import random
import unicodedata

import gguf
import sentencepiece
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers, AddedToken

OUT = "tests/tokenizer/golden"

SENTENCES = [
    "The quick brown fox jumps over the lazy dog, doesn't it? I'll say: they're WE'VE seen 1234567 of them.",
    "Всі люди народжуються вільними і рівними у своїй гідності та правах.",
    "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια.",
    "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心。",
    "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
    "يولد جميع الناس أحراراً متساوين في الكرامة والحقوق.",
    "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.",
    "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
    "সমস্ত মানুষ স্বাধীনভাবে সমান মর্যাদা এবং অধিকার নিয়ে জন্মগ্রহণ করে।",
    "மனிதப் பிறிவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்.",
    "ప్రతిపత్తిస్వత్వముల విషయమున మానవులెల్లరును జన్మతః స్వతంత్రులును సమానులును నగుదురు.",
    "ಎಲ್ಲಾ ಮಾನವರೂ ಸ್ವತಂತ್ರರಾಗಿಯೇ ಜನಿಸಿದ್ದಾರೆ.",
    "മനുഷ്യരെല്ലാവരും തുല്യാവകാശങ്ങളോടും അന്തസ്സോടും സ്വാതന്ത്ര്യത്തോടുംകൂടി ജനിച്ചിട്ടുള്ളവരാണ്.",
    "ਸਾਰਾ ਮਨੁੱਖੀ ਪਰਿਵਾਰ ਆਪਣੀ ਮਹਿਮਾ ਦੇ ਪੱਖੋਂ ਜਨਮ ਤੋਂ ਹੀ ਆਜ਼ਾਦ ਹੈ।",
    "પ્રતિષ્ઠા અને અધિકારોની દૃષ્ટિએ સર્વ માનવો જન્મથી સ્વતંત્ર અને સમાન હોય છે.",
    "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ",
    "ມະນຸດທຸກຄົນເກີດມາມີສິດເສລີພາບ ແລະ ສະເໝີໜ້າກັນ",
    "មនុស្សទាំងអស់កើតមកមានសេរីភាព និងសមភាព",
    "လူတိုင်းသည် တူညီ လွတ်လပ်သော ဂုဏ်သိက္ခာဖြင့် မွေးဖွားလာသူများ ဖြစ်သည်။",
    "ყველა ადამიანი იბადება თავისუფალი და თანასწორი თავისი ღირსებითა და უფლებებით.",
    "Բոլոր մարդիկ ծնվում են ազատ ու հավասար իրենց արժանապատվությամբ ու իրավունքներով։",
    "የሰው ልጅ ሁሉ ሲወለድ ነፃና በክብርና በመብትም እኩልነት ያለው ነው።",
    "འགྲོ་བ་མིའི་རིགས་རྒྱུད་ཡོངས་ལ་སྐྱེས་ཙམ་ཉིད་ནས་ཆེ་མཐོངས་དང༌།",
    "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi.",
    "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Straße, Äpfel, Œuvre, naïve café.",
    "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. İSTANBUL ığdır",
    "for (size_t i = 0; i < n; ++i) {\n\t\tsum += x[i] * 0x1F;  // running total\n    }\n",
    "def f(x: int) -> str:\n    return f\"{x!r}\\n\" if x >= 3.14e-10 else None\n\n\nclass A(B):\n\tpass\r\n",
    "SELECT * FROM t WHERE a<>b AND c LIKE '%x_y%'; <html lang=\"en\">&amp;</html> {\"k\": [1, 2, null]}",
    "👍🏽 👩‍👩‍👧‍👦 🇺🇦 🚀✨ 🦙.cpp ☃️ ①②③ ½ ⅷ ™ ﬁ Å ㎏ ｆｕｌｌ １２３ ︵ ‰",
    "10,000.50 €/m² ≈ 3×10⁸ ± 5% — “quoted” … ‘x’ «y» ¿qué? ¡no! #tag @user https://a.b/c?d=e&f=1#g",
]
ODD = ["", " ", "  ", "   \t", "\n", "\n\n\n", "\r\n", "\t\n ", " \n x", "a  b", "a   b   ", "   lead", "x\n\n  y", "\u00a0x", "\u3000日本",
       "e\u0301 a\u0300", "\u200b", "\u2028x", "\ufeffb", "'s 'S 't 'LL 'Ll", "A'LL a's ''", "____init____", "!!!???", "...", "1 22 333 4444 55555",
       "\u0085z", "\u180ez", "x\u0000"[:1], "\u007f", "ab12345!!cd", "İi", "ſs", "\U00010400\U00010428", "\U0001d7d8\U0001d7d9", "ａｂ１２"]
SPECIALS = ["<|im_start|>", "<|im_end|>", "<tool>"]


def make_texts():
    rng = random.Random(20)
    texts = list(ODD)
    for s in SENTENCES:
        texts.append(s)
        words = s.split(" ")
        for _ in range(42):
            a = rng.randrange(len(words))
            piece = " ".join(words[a : a + rng.randrange(1, 5)])[: rng.randrange(3, 40)]
            texts.append(piece)
    for _ in range(420):
        parts = []
        for _ in range(rng.randrange(1, 5)):
            s = rng.choice(SENTENCES)
            a = rng.randrange(len(s))
            parts.append(s[a : a + rng.randrange(1, 12)])
            parts.append(rng.choice(["", "", " ", "  ", "\n", "   ", "\t", "'s", "123", "!?", "🦙"]))
        texts.append("".join(parts))
    for _ in range(250):  # special tokens inside text, never first
        parts = ["x"]
        for _ in range(rng.randrange(1, 4)):
            parts.append(rng.choice(SENTENCES)[: rng.randrange(0, 8)])
            parts.append(rng.choice(["", " ", "\n"]))
            parts.append(rng.choice(SPECIALS + ["<|im_", "<tool", "tool>"]))
            parts.append(rng.choice(["", " ", "y"]))
        texts.append("".join(parts))
    assert all("\0" not in t for t in texts)
    return texts


def leb(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def write_ids(name, rows):
    with open(f"{OUT}/{name}.ids", "wb") as f:
        for row in rows:
            f.write(leb(len(row)) + b"".join(leb(i) for i in row))


def write_gguf(name, model, tokens, types, scores=None, merges=None, pre=None, ids=(), flags=(), charsmap=None):
    w = gguf.GGUFWriter(f"{OUT}/{name}.gguf", "llama")
    w.add_tokenizer_model(model)
    if pre:
        w.add_tokenizer_pre(pre)
    w.add_token_list(tokens)
    w.add_token_types(types)
    if scores:
        w.add_token_scores(scores)
    if merges is not None:
        w.add_token_merges(merges)
    for key, value in ids:
        if value < 0:
            continue
        w.add_uint32(f"tokenizer.ggml.{key}", value)
    for key, value in flags:
        w.add_bool(f"tokenizer.ggml.{key}", value)
    if charsmap:
        w.add_precompiled_charsmap(charsmap)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
C = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
WS = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
UP, LOW = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
O200K = r"[^\r\n\p{L}\p{N}]?" + UP + "*" + LOW + "+%s|" + r"[^\r\n\p{L}\p{N}]?" + UP + "+" + LOW + "*%s|%s" + r"| ?[^\s\p{L}\p{N}]+[\r\n/]*" + WS


def isolated(pattern):
    return pre_tokenizers.Split(Regex(pattern), "isolated")


BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
BYTES_GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
# The pre-tokenizers as the families' tokenizer.json files have them.
PRE = {
    "gpt-2": [BYTES_GPT2],
    "smollm": [pre_tokenizers.Digits(individual_digits=True), BYTES_GPT2],
    "falcon": [pre_tokenizers.Punctuation("contiguous"), BYTES_GPT2, pre_tokenizers.Digits(individual_digits=False),
               isolated("[0-9][0-9][0-9]")],
    "llama-bpe": [isolated(C + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*" + WS), BYTES],
    "qwen2": [isolated(C + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*" + WS), BYTES],
    "qwen35": [isolated(C + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + WS), BYTES],
    "gpt-4o": [isolated(O200K % (C + "?", C + "?", r"\p{N}{1,3}")), BYTES],
    "tekken": [isolated(O200K % ("", "", r"\p{N}")), BYTES],
    "deepseek-v3": [isolated(r"\p{N}{1,3}"), isolated(r"[一-龥぀-ゟ゠-ヿ]+"),
                    isolated(r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*" + WS),
                    BYTES],
    "deepseek-coder": [isolated("[\r\n]"), isolated(r"\s?\p{L}+"), isolated(r"\s?\p{P}+"),
                       isolated("[一-龥ࠀ-一가-\ud7ff]+"), pre_tokenizers.Digits(individual_digits=True), BYTES],
}


def make_bpe(texts, gguf_name, trained_with, names):
    """One vocabulary, trained under the first pre-tokenizer; ids under each of `names`."""
    base = Tokenizer(models.BPE())
    base.pre_tokenizer = pre_tokenizers.Sequence(PRE[trained_with])
    base.train_from_iterator(
        SENTENCES * 3 + [t for t in texts if len(t) > 20],
        trainers.BpeTrainer(vocab_size=1200, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
                            show_progress=False, min_frequency=2))
    model = json.loads(base.to_str())["model"]
    vocab = model["vocab"]
    merges = [tuple(m) for m in model["merges"]]
    tokens = [t for t, _ in sorted(vocab.items(), key=lambda kv: kv[1])]
    size = len(tokens)
    write_gguf(gguf_name, "gpt2", tokens + SPECIALS, [1] * size + [3, 3, 4], merges=[" ".join(m) for m in merges],
               pre=trained_with, ids=[("bos_token_id", size), ("eos_token_id", size + 1)], flags=[("add_bos_token", False)])
    for name in names:
        t = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=name in ("llama-bpe", "tekken")))
        if name == "qwen2":
            t.normalizer = normalizers.NFC()
        t.pre_tokenizer = pre_tokenizers.Sequence(PRE[name])
        t.add_special_tokens(SPECIALS[:2])
        t.add_tokens([AddedToken(SPECIALS[2], normalized=False)])
        write_ids(f"bpe.{name}", [t.encode(x, add_special_tokens=False).ids for x in texts])


def proto_fields(data):
    """Field number -> last value of a protocol buffer message (varints and byte strings)."""
    fields, i = {}, 0

    def varint():
        nonlocal i
        value = shift = 0
        while True:
            byte = data[i]
            i += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while i < len(data):
        key = varint()
        kind = key & 7
        if kind == 0:
            fields[key >> 3] = varint()
        elif kind == 2:
            length = varint()
            fields[key >> 3] = data[i : i + length]
            i += length
        else:
            i += 4 if kind == 5 else 8
    return fields


def make_sentencepiece(texts, name, model, **options):
    blob = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 20 + [t for t in texts if t.strip()]), model_writer=blob, minloglevel=2, num_threads=1, **options)
    sp = sentencepiece.SentencePieceProcessor(model_proto=blob.getvalue())
    n = sp.get_piece_size()
    types = [2 if sp.is_unknown(i) else 3 if sp.is_control(i) else 6 if sp.is_byte(i) else 1 for i in range(n)]
    tokens = [sp.id_to_piece(i) for i in range(n)]
    for i in range(n):
        if tokens[i] == "<tool>":
            types[i] = 4
    spec = proto_fields(proto_fields(blob.getvalue())[3])  # ModelProto.normalizer_spec
    charsmap = bytes(spec[2]) if model == "t5" and spec.get(2) else None
    write_gguf(name, model, tokens, types, scores=[sp.get_score(i) for i in range(n)], charsmap=charsmap,
               ids=[("bos_token_id", sp.bos_id()), ("eos_token_id", sp.eos_id()), ("unknown_token_id", sp.unk_id())],
               flags=[("add_space_prefix", bool(spec.get(3, 1))), ("remove_extra_whitespaces", bool(spec.get(4, 1))),
                      ("add_bos_token", False), ("add_eos_token", False)])
    write_ids(name, [sp.encode(x) for x in texts])


def make_wordpiece(texts, name, lowercase):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    t.normalizer = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=True, lowercase=lowercase)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t.train_from_iterator(SENTENCES * 3, trainers.WordPieceTrainer(vocab_size=900, special_tokens=specials, show_progress=False))
    tokens = [x for x, _ in sorted(t.get_vocab().items(), key=lambda kv: kv[1])]
    spelt = [x if x in specials else x[2:] if x.startswith("##") else "\u2581" + x for x in tokens]
    write_gguf(name, "bert", spelt, [3] * 5 + [1] * (len(tokens) - 5),
               ids=[("unknown_token_id", 1), ("cls_token_id", 2), ("bos_token_id", 2), ("seperator_token_id", 3), ("padding_token_id", 0)],
               flags=[("normalizer.lowercase", lowercase)])
    write_ids(name, [t.encode(x, add_special_tokens=False).ids for x in texts])


def main():
    os.makedirs(OUT, exist_ok=True)
    texts = make_texts()
    with open(f"{OUT}/texts.bin", "wb") as f:
        f.write(b"".join(t.encode() + b"\0" for t in texts))
    make_bpe(texts, "bpe", "gpt-2", [name for name in PRE if name != "falcon"])
    # Falcon splits digits after the byte alphabet is in place, and some bytes are spelt as digits ("½"): only a
    # vocabulary trained like that, whose merges never cross such bytes, is one that Falcon could have.
    make_bpe(texts, "bpe_falcon", "falcon", ["falcon"])
    make_sentencepiece(texts, "spm_bpe", "llama", model_type="bpe", vocab_size=1500, byte_fallback=True, character_coverage=0.98,
                       normalization_rule_name="identity", remove_extra_whitespaces=False, split_digits=True,
                       user_defined_symbols=["<tool>"], allow_whitespace_only_pieces=True)
    make_sentencepiece(texts, "unigram", "t5", model_type="unigram", vocab_size=1200, character_coverage=0.98,
                       normalization_rule_name="nmt_nfkc", bos_id=-1, pad_id=0, eos_id=1, unk_id=2)
    make_sentencepiece(texts, "unigram_bytes", "t5", model_type="unigram", vocab_size=1200, character_coverage=0.98, byte_fallback=True,
                       normalization_rule_name="identity", remove_extra_whitespaces=False)
    make_wordpiece(texts, "wordpiece_uncased", True)
    make_wordpiece(texts, "wordpiece_cased", False)
    scripts = {unicodedata.name(c, "?").split(" ")[0] for t in texts for c in t if c.isalpha()}
    print(f"{len(texts)} texts, {len(scripts)} scripts by character name")


main()
