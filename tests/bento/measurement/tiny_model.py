"""A very small language model, trained in a second on a text that this script makes up.

Next tokens come from three parts, mixed with fixed weights: word n-grams of the training text
(Witten-Bell interpolation), words that followed the same words earlier in the prompt, and, after
"Answer:", a belief about which relation the prompt is about. That belief is what makes examples in
the prompt matter: each solved example is evidence for one relation and against the others, and the
answer to the last question is looked up in the relations by that belief.
"""

import json
import math
import re
from collections import Counter, defaultdict
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

TOKEN = re.compile(r" ?[A-Za-z]+| ?\d+|\n| ?[^\sA-Za-z\d]|\s")
WORD = re.compile(r"[A-Za-z]+|\d+")
CUE = re.compile(r"^(?:Answer|A):(.*)$", re.MULTILINE)
OPTION = re.compile(r"^\s*(?:- )?\(?([A-Z])[.):]\)?[ ]*(.+)$", re.MULTILINE)
LETTERS = "ABCD"
FOOTING = 3  # tokens of context that the n-grams see

YOUNG = """dog puppy cat kitten cow calf horse foal sheep lamb hen chick bear cub wolf pup goat kid
pig piglet duck duckling goose gosling deer fawn frog tadpole owl owlet swan cygnet eagle eaglet
fox kit whale calf lion cub hare leveret fish fry bee larva spider spiderling"""
HOME = """dog kennel cat house cow barn horse stable sheep fold hen coop bear cave wolf den goat
barn pig sty duck pond goose pond deer forest frog pond owl hollow swan lake eagle cliff fox den
whale sea lion den hare meadow fish sea bee hive spider web"""
COLOUR = """apple red banana yellow grass green sky blue snow white coal black orange orange plum
purple brick red lemon yellow leaf green sea blue milk white night black carrot orange rose pink
cherry red corn yellow pine green ink blue salt white tar black flamingo pink chocolate brown"""
PLACE = """apple tree banana tree grass ground sky above snow mountain coal mine orange tree plum
tree brick wall lemon tree leaf tree sea shore milk kitchen night above carrot ground rose garden
cherry tree corn field pine forest ink desk salt kitchen tar road flamingo lake chocolate
kitchen"""
OPPOSITE = """hot cold big small up down day night old young wet dry hard soft fast slow full empty
light dark good bad happy sad high low near far early late rich poor strong weak thick thin open
closed clean dirty sharp blunt loud quiet tall short true false deep shallow"""
START = (
    "Ar Bel Cor Dan Es Fal Gor Hel Is Jor Kal Lum Mar Nor Os Pel Quor Ral Sel Tor Ul Ver Wen Zan"
)
TONGUES = "Arvish Belic Corran Danese Elvan Falic"


def pairs(text):
    words = text.split()
    return dict(zip(words[::2], words[1::2], strict=True))


def relations():
    """The facts, by relation: what is asked, and the answer to it."""
    lands = [f"{start}ia" for start in START.split()]
    tongues = TONGUES.split()
    return {
        "young": ("young", "animals", pairs(YOUNG)),
        "home": ("home", "animals", pairs(HOME)),
        "colour": ("colour", "things", pairs(COLOUR)),
        "place": ("place", "things", pairs(PLACE)),
        "next": ("next", "numbers", {str(n): str(n + 1) for n in range(1, 25)}),
        "double": ("double", "numbers", {str(n): str(2 * n) for n in range(1, 25)}),
        "capital": ("capital", "lands", {land: f"{land[:-2]}burg" for land in lands}),
        "tongue": ("tongue", "lands", {n: tongues[i * 7 % 6] for i, n in enumerate(lands)}),
        "opposite": ("opposite", "words", pairs(OPPOSITE)),
    }


SISTERS = {"young": "home", "colour": "place", "next": "double", "capital": "tongue"}
SISTERS |= {sister: name for name, sister in SISTERS.items()}


def wording(cue, word, plain):
    return f"What goes with {word}?" if plain else f"What is the {cue} of {word}?"


def choices(name, word, rng):
    """Four options: the right one, the sister relation's, and other answers of the relation."""
    facts = relations()[name][2]
    options = [facts[word]]
    if name in SISTERS:
        options.append(relations()[SISTERS[name]][2][word])
    others = sorted({*facts.values()} - {*options})
    options = list(dict.fromkeys(options))
    options += [others[i] for i in rng.permutation(len(others))[: 4 - len(options)]]
    order = rng.permutation(len(options))
    return [options[i] for i in order], int(np.argmin(order))


def corpus(seed=0):
    """The training text by relation: most facts, some of them wrongly told."""
    rng = np.random.default_rng(seed)
    text = {}
    for name, (cue, subject, facts) in relations().items():
        wrong, blocks = sorted(facts.values()), []
        known = [word for word in facts if rng.random() < 0.85]
        for word in rng.permutation(known * 4).tolist():
            answer = facts[word] if rng.random() < 0.8 else wrong[rng.integers(len(wrong))]
            question = wording(cue, word, rng.random() < 0.5)
            if rng.random() < 0.3:
                options, right = choices(name, word, rng)
                lines = [f"{letter}. {o}" for letter, o in zip(LETTERS, options, strict=False)]
                question, answer = "\n".join([question, *lines]), LETTERS[right]
            blocks.append(f"{question}\nAnswer: {answer}\n\n")
        title = f"The following are multiple choice questions (with answers) about {subject}.\n\n"
        text[name] = title + "".join(blocks)
    return text


class TinyModel:
    """Probabilities of the next token, trained on `corpus(seed)`."""

    def __init__(self, seed=0):
        text = corpus(seed)
        words = {word for part in text.values() for word in WORD.findall(part)}
        words |= {*map(chr, range(33, 127))}
        self.vocabulary = ["�", "\n", " ", "\t", *sorted(words | {f" {w}" for w in words})]
        self.ids = {token: i for i, token in enumerate(self.vocabulary)}
        self.counts = defaultdict(Counter)
        for part in text.values():
            ids = self._ids(self.tokens(part))
            for i, token in enumerate(ids):
                for length in range(min(i, FOOTING) + 1):
                    self.counts[tuple(ids[i - length : i])][token] += 1
        self.domains = [_Relation(part) for part in text.values()]
        self._grams = lru_cache(maxsize=50_000)(self._grams)

    def tokens(self, text):
        """Cut text into tokens, which join to the text again; unknown words into characters."""
        found = TOKEN.findall(text)
        return [t for token in found for t in ([token] if token in self.ids else list(token))]

    def next(self, tokens):
        """Probability of each token of the vocabulary after `tokens`."""
        return self.walk([*tokens, " "], start=len(tokens))[0]

    def walk(self, tokens, start=1):
        """The distributions at positions start, start + 1 … of tokens, each from those before."""
        ids, followers, rows = self._ids(tokens), defaultdict(Counter), []
        for i in range(len(tokens)):
            if i >= start:
                rows.append(self._at(tokens, ids, i, followers))
            for length in (2, 3):
                if i >= length:
                    followers[tuple(ids[i - length : i])][ids[i]] += 1
        return rows

    def _ids(self, tokens):
        return [self.ids.get(token, 0) for token in tokens]

    def _at(self, tokens, ids, i, followers):
        found = self._grams(tuple(ids[max(0, i - FOOTING) : i]))
        seen = followers.get(tuple(ids[i - 3 : i])) or followers.get(tuple(ids[i - 2 : i]))
        if i >= 2 and seen:
            found = 0.75 * found
            for token, count in seen.items():
                found[token] += 0.25 * count / seen.total()
        gap = i >= 1 and tokens[i - 1] == " "
        last = i - 1 - gap
        if last >= 1 and tokens[last] == ":" and tokens[last - 1] in {"Answer", "A"}:
            said = _believed(self.domains, "".join(tokens[: last + 1]))
            if said:
                found = 0.1 * found
                for word, share in said.items():
                    found[self.ids.get(word if gap else f" {word}", 0)] += 0.9 * share
        return found

    def _grams(self, context):
        size = len(self.vocabulary)
        below = self._grams(context[1:]) if context else np.full(size, 1 / size)
        counts = self.counts.get(context)
        if not counts:
            return below
        kinds = len(counts)
        row = kinds * below
        for token, count in counts.items():
            row[token] += count
        return row / (counts.total() + kinds)


class _Relation:
    """Which answer goes with which word, in the training text of one relation."""

    def __init__(self, text):
        self.pairs, self.answers, self.words = defaultdict(Counter), Counter(), Counter()
        for question, options, said in _examples(text):
            answer = options.get(said, said)
            self.answers[answer] += 1
            self.words.update(question)
            for word in question:
                self.pairs[word][answer] += 1
        self.words.update(w.lower() for w in WORD.findall(text.split("\n\n")[0]))

    def answer(self, question, answer):
        """Share of the answer: after the question's most telling word, and of all answers."""
        known = [self.pairs[w] for w in question if w in self.pairs]
        telling = min(known, key=lambda c: c.total(), default=None)
        share = (self.answers[answer] + 0.02) / (self.answers.total() + 2)
        if telling and telling.total() < self.answers.total() / 3:
            share = 0.2 * share + 0.8 * telling[answer] / telling.total()
        return share

    def familiar(self, words):
        """Mean log share of words in the relation's questions."""
        total = self.words.total() + 500
        return sum(math.log((self.words[w] + 0.5) / total) for w in words)


def _examples(text):
    """Yield (words of the question, its options, the answer as written) of a text."""
    start = 0
    for cue in CUE.finditer(text):
        block = text[start : cue.start()].rstrip().rsplit("\n\n", 1)[-1]
        options = {letter: words.strip() for letter, words in OPTION.findall(block)}
        question = [w.lower() for w in WORD.findall(OPTION.sub("", block))]
        yield question, options, cue.group(1).strip()
        start = cue.end()


def _believed(domains, text):
    """Shares of the letters, or of the answer words, after the last cue of a text."""
    *solved, (question, options, _) = _examples(text)
    title = [w.lower() for w in WORD.findall(text.split("\n\n")[0])] if "\n\n" in text else []
    belief = np.array([0.25 * d.familiar(title) + 0.5 * d.familiar(question) for d in domains])
    letters = Counter()
    for asked, shown, said in solved:
        letters[said] += said in shown
        answer = shown.get(said, said)
        belief += [0.25 * math.log(d.answer(asked, answer)) for d in domains]
    belief = np.exp(0.6 * (belief - belief.max()))
    belief /= belief.sum()
    if options:
        said = {
            letter: sum(b * d.answer(question, o) for b, d in zip(belief, domains, strict=True))
            ** 0.6
            * (2 + letters[letter]) ** 0.3
            for letter, o in options.items()
        }
    else:
        said = {
            word: sum(b * d.answer(question, word) for b, d in zip(belief, domains, strict=True))
            for word in sorted(set().union(*(d.answers for d in domains)))
        }
    total = sum(said.values())
    return {word: share / total for word, share in said.items()}


@cache
def tiny_model():
    """The model, trained once a process."""
    return TinyModel()


def tiny_tasks(folder, seed=1):
    """Write one JSONL file a task, and return their paths: eight with options, two without."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rng, paths = np.random.default_rng(seed), []
    for name, (cue, subject, facts) in relations().items():
        words = [list(facts)[i] for i in rng.permutation(len(facts))]
        if name != "opposite":
            paths.append(folder / f"{name}.jsonl")
            _write(paths[-1], name, cue, subject, words, lambda w, n=name: choices(n, w, rng))
        if name in {"opposite", "capital"}:
            paths.append(folder / f"open_{name}.jsonl")
            _write(paths[-1], f"open_{name}", cue, subject, words, lambda w, f=facts: ([], f[w]))
    return paths


def _write(path, task, cue, subject, words, answer):
    lines = []
    for i, word in enumerate(words):
        options, right = answer(word)
        row = {
            "task": task,
            "question": wording(cue, word, plain=i % 4 < 3),
            "answer": LETTERS[right] if options else right,
            "split": "train" if i % 2 else "test",
            "subject": subject,
        }
        lines.append(json.dumps(row | ({"options": options} if options else {})))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
