"""Local models: tiny ones with random weights, made on the spot, against a plain computation."""

import asyncio
import math

import numpy as np
import pytest
from tiny_model import corpus

from fewbench.errors import MissingExtraError, ModelError
from fewbench.runners.models import LocalModel, TooLong

torch = pytest.importorskip("torch", reason="needs the extra local")
transformers = pytest.importorskip("transformers", reason="needs the extra local")

pytestmark = [
    # warnings of the packages' own insides
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
ROOM = 128
LETTERS = [" A", " B", " C", " D"]
TEXT = corpus()["young"]


def tokenizer_of(bos):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(corpus().values(), trainer)
    made.post_processor = processors.ByteLevel(trim_offsets=True)
    if bos:
        # a tokenizer that puts tokens of its own at both ends, as some do
        made.post_processor = processors.Sequence(
            [
                processors.ByteLevel(trim_offsets=True),
                processors.TemplateProcessing(
                    single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
                ),
            ]
        )
    names = {"bos_token": "<s>", "eos_token": "</s>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **names)


def saved(folder, kind):
    torch.manual_seed(0)
    tokenizer = tokenizer_of(bos=kind == "llama")
    size = {"vocab_size": len(tokenizer), "bos_token_id": 0, "eos_token_id": 1}
    if kind == "gpt2":
        config = transformers.GPT2Config(
            n_embd=32, n_layer=2, n_head=2, n_positions=ROOM, initializer_range=0.4, **size
        )
    else:
        config = transformers.LlamaConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            max_position_embeddings=ROOM,
            initializer_range=0.4,
            **size,
        )
    model = transformers.AutoModelForCausalLM.from_config(config)
    # settings that would make a text other than the likeliest one
    model.generation_config.do_sample = True
    model.generation_config.repetition_penalty = 3.0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=["gpt2", "llama"])
def folder(request, tmp_path_factory):
    return saved(tmp_path_factory.mktemp(request.param), request.param)


class Plain:
    """One prompt at a time, no padding, no batch."""

    def __init__(self, folder):
        self.model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def ids(self, text):
        ids = self.tokenizer(text)["input_ids"]
        return ids[:-1] if ids[-1] == 1 else ids

    def value(self, prompt, continuation):
        ids, first = self.ids(prompt + continuation), len(self.ids(prompt))
        with torch.no_grad():
            rows = torch.log_softmax(self.model(torch.tensor([ids])).logits[0], dim=-1)
        return sum(float(rows[i - 1, ids[i]]) for i in range(first, len(ids))), len(ids) - first

    def greedy(self, prompt, most):
        ids, new = self.ids(prompt), []
        while len(new) < most:
            with torch.no_grad():
                new.append(int(self.model(torch.tensor([ids + new])).logits[0, -1].argmax()))
            if new[-1] == 1:
                break
        return self.tokenizer.decode(new, skip_special_tokens=True)


def ask(folder, call, **settings):
    async def run():
        model = LocalModel(folder, device="cpu", **settings)
        try:
            return await call(model)
        finally:
            await model.close()

    return asyncio.run(run())


PROMPTS = [TEXT[100 : 100 + n] + "\nAnswer:" for n in (5, 40, 90, 150, 33, 60, 121)]


@pytest.mark.parametrize("batch", [1, 3, 16])
def test_a_batch_changes_nothing(folder, batch):
    async def all_of(model):
        chosen = await asyncio.gather(*(model.choose(p, LETTERS) for p in PROMPTS))
        read = await asyncio.gather(*(model.read(p, " puppy and\n cub") for p in PROMPTS))
        mixed = await asyncio.gather(
            *(model.choose(p, [" B", " kennel of it"]) for p in PROMPTS),
            *(model.write(p, [], 6) for p in PROMPTS),
        )
        return chosen, read, mixed

    plain = Plain(folder)
    chosen, read, mixed = ask(folder, all_of, batch=batch)
    for i, prompt in enumerate(PROMPTS):
        expected = [plain.value(prompt, letter)[0] for letter in LETTERS]
        np.testing.assert_allclose(chosen[i].log_probabilities, expected, atol=1e-4)
        value, tokens = plain.value(prompt, " puppy and\n cub")
        assert read[i].log_probability == pytest.approx(value, abs=1e-4)
        assert read[i].tokens == tokens > 2
        expected = [plain.value(prompt, option)[0] for option in (" B", " kennel of it")]
        np.testing.assert_allclose(mixed[i].log_probabilities, expected, atol=1e-4)
        assert mixed[len(PROMPTS) + i].text == plain.greedy(prompt, 6)
    assert len({round(c.log_probabilities[0], 6) for c in chosen}) == len(PROMPTS)


def test_letters_take_one_pass_and_words_one_each(folder):
    plain = Plain(folder)
    letters = ask(folder, lambda m: m.choose(PROMPTS[1], LETTERS))
    words = ask(folder, lambda m: m.choose(PROMPTS[1], [" A", " xyzzy"]))
    n = len(plain.ids(PROMPTS[1]))
    assert letters.usage.prompt == n
    assert words.usage.prompt == n + 1 + len(plain.ids(PROMPTS[1] + " xyzzy"))


def test_a_token_across_the_boundary_counts_whole(folder):
    plain = Plain(folder)
    spaced = ask(folder, lambda m: m.read(PROMPTS[1] + " ", "B"))
    value, tokens = plain.value(PROMPTS[1], " B")
    assert spaced.tokens == tokens == 1
    assert spaced.log_probability == pytest.approx(value, abs=1e-4)


def test_characters_of_several_tokens(folder):
    plain = Plain(folder)
    read = ask(folder, lambda m: m.read("Größe – ü", " 日本é"))
    value, tokens = plain.value("Größe – ü", " 日本é")
    assert read.tokens == tokens >= 8
    assert read.log_probability == pytest.approx(value, abs=1e-4)


def test_an_empty_prompt_goes_on_from_the_first_token(folder):
    read = ask(folder, lambda m: m.read("", "dog"))
    assert math.isfinite(read.log_probability)
    assert read.tokens == len(tokenizer_of(bos=False)("dog")["input_ids"])


def test_nothing_depends_on_chance_and_stops_stop(folder):
    whole = [ask(folder, lambda m: m.write(PROMPTS[2], [], 12)).text for _ in range(2)]
    assert whole[0] == whole[1] == Plain(folder).greedy(PROMPTS[2], 12)
    end = whole[0][4:6]
    cut = ask(folder, lambda m: m.write(PROMPTS[2], ["nowhere", end], 12))
    assert cut.text == whole[0][: whole[0].index(end)]
    assert cut.usage.completion < 12


def test_what_does_not_fit(folder):
    plain, prompt = Plain(folder), TEXT
    assert len(plain.ids(prompt)) > ROOM
    for call in (
        lambda m: m.choose(prompt, LETTERS),
        lambda m: m.read(prompt, " x"),
        lambda m: m.write(prompt, [], 1),
        lambda m: m.write(PROMPTS[0], [], ROOM),
    ):
        with pytest.raises(TooLong, match="room for 128"):
            ask(folder, call)
    while len(plain.ids(prompt)) > ROOM:
        prompt = prompt[1:]
    fitting = ask(folder, lambda m: m.choose(prompt, LETTERS))
    assert fitting.usage.prompt == ROOM
    with pytest.raises(TooLong):
        ask(folder, lambda m: m.write(prompt, [], 1))


def test_one_that_does_not_fit_harms_no_other(folder):
    async def both(model):
        calls = [model.choose(p, LETTERS) for p in (PROMPTS[0], TEXT, PROMPTS[1])]
        return await asyncio.gather(*calls, return_exceptions=True)

    first, long, last = ask(folder, both)
    assert isinstance(long, TooLong)
    assert len(first.log_probabilities) == len(last.log_probabilities) == 4


def test_who_gives_up_harms_no_other(folder):
    async def one_leaves(model):
        tasks = [asyncio.ensure_future(model.choose(p, LETTERS)) for p in PROMPTS]
        await asyncio.sleep(0)
        tasks[2].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    found = ask(folder, one_leaves, batch=2)
    assert isinstance(found[2], asyncio.CancelledError)
    assert all(len(c.log_probabilities) == 4 for i, c in enumerate(found) if i != 2)


def test_short_memory_halves_the_batch(folder, monkeypatch):
    from fewbench.runners.models.local import Passes

    whole, sizes = Passes._scored, []

    def scored(self, torch, jobs):
        sizes.append(len(jobs))
        if len(jobs) > 2:
            raise torch.OutOfMemoryError("no memory left")
        return whole(self, torch, jobs)

    async def all_of(model):
        return await asyncio.gather(*(model.choose(p, LETTERS) for p in PROMPTS))

    expected = ask(folder, all_of)
    monkeypatch.setattr(Passes, "_scored", scored)
    for one, other in zip(ask(folder, all_of), expected, strict=True):
        np.testing.assert_allclose(one.log_probabilities, other.log_probabilities, atol=1e-4)
    assert sizes == [7, 3, 1, 2, 4, 2, 2]


def test_facts_and_types(folder):
    facts = ask(folder, lambda m: m.prepare(), dtype="bfloat16")
    assert facts["dtype"] == "bfloat16"
    assert facts["scoring"] == "logits"
    assert facts["served"] in {"GPT2LMHeadModel", "LlamaForCausalLM"}
    rough = ask(folder, lambda m: m.choose(PROMPTS[1], LETTERS), dtype="bfloat16")
    fine = ask(folder, lambda m: m.choose(PROMPTS[1], LETTERS))
    np.testing.assert_allclose(rough.log_probabilities, fine.log_probabilities, atol=0.5)


def test_what_cannot_be_loaded(tmp_path, folder):
    with pytest.raises(ModelError, match="cannot be loaded"):
        LocalModel(tmp_path)
    with pytest.raises(ModelError, match="dtype"):
        LocalModel(folder, dtype="int3")
    with pytest.raises(ModelError, match="batch"):
        LocalModel(folder, batch=0)
    with pytest.raises(ModelError, match="no template"):
        LocalModel(folder, chat=True)


def test_weights_that_would_be_unpickled_are_refused(tmp_path, folder):
    plain = Plain(folder)
    plain.model.config.save_pretrained(tmp_path)
    plain.tokenizer.save_pretrained(tmp_path)
    torch.save(plain.model.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelError, match="safetensors"):
        LocalModel(tmp_path)


def test_missing_packages(monkeypatch):
    monkeypatch.setattr("fewbench.runners.models.local.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"fewbench\[local\]"):
        LocalModel("anything")
