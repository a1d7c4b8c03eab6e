"""A strict reader of the Prometheus text format (0.0.4): what a lenient one forgives is an error."""

import math
import re

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (\S+)\Z", re.S)
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|\Z)')
_UNESCAPE = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}
_SUFFIXES = ("_bucket", "_sum", "_count")


class Malformed(AssertionError):
    """Not what the format or its conventions ask for."""


class Family:
    def __init__(self, name, text):
        self.name = name
        self.help = text
        self.type = None
        self.samples = []  # (name, labels as a sorted tuple of pairs, value)


def _labels(text):
    pairs, at = [], 0
    while at < len(text):
        match = _LABEL.match(text, at)
        if not match or (match.group(3) == "," and match.end() == len(text)):
            raise Malformed(f"labels {text!r} at {at}")
        value = re.sub(r"\\.", lambda m: _UNESCAPE[m.group()], match.group(2))
        pairs.append((match.group(1), value))
        at = match.end()
    if len({key for key, _ in pairs}) != len(pairs):
        raise Malformed(f"a label twice in {text!r}")
    return tuple(sorted(pairs))


def _number(text):
    if not re.fullmatch(r"[+-]?(?:\d+(?:\.\d+)?(?:e[+-]?\d+)?|Inf)|NaN", text):
        raise Malformed(f"no number: {text!r}")
    return float(text)


def _base(family, name):
    """Whether the sample belongs to the family."""
    if family.type == "histogram":
        return name.startswith(family.name) and name[len(family.name):] in _SUFFIXES
    return name == family.name


def _check_conventions(family):
    name = family.name
    if not family.help or not family.type:
        raise Malformed(f"{name} has no HELP or no TYPE")
    if (family.type == "counter") != name.endswith("_total"):
        raise Malformed(f"{name} is a {family.type}: counters end in _total, nothing else does")
    if re.search(r"milli|micro|nano|_ms\b|_us\b|kilobytes|minutes", name):
        raise Malformed(f"{name} is not in base units")
    for _, _, value in family.samples:
        if family.type != "gauge" and (math.isnan(value) or value < 0):
            raise Malformed(f"{name} is {value}")


def _check_histogram(family):
    parts = {}
    for name, labels, value in family.samples:
        rest = tuple(pair for pair in labels if pair[0] != "le")
        suffix = name[len(family.name):]
        part = parts.setdefault(rest, {"_bucket": [], "_sum": None, "_count": None})
        if suffix == "_bucket":
            part["_bucket"].append((_number(dict(labels)["le"]), value))
        elif part[suffix] is not None:
            raise Malformed(f"{name} twice for {rest}")
        else:
            part[suffix] = value
    for rest, part in parts.items():
        bounds = [bound for bound, _ in part["_bucket"]]
        counts = [count for _, count in part["_bucket"]]
        if bounds != sorted(set(bounds)) or not bounds or bounds[-1] != math.inf:
            raise Malformed(f"{family.name}{rest}: bounds {bounds}")
        if counts != sorted(counts) or counts[-1] != part["_count"] or part["_sum"] is None:
            raise Malformed(f"{family.name}{rest}: counts {counts}, {part['_count']}")


class _Reader:
    def __init__(self):
        self.families = {}
        self.family = None
        self.seen = set()

    def comment(self, line):
        match = re.fullmatch(rf"# (HELP|TYPE) ({_NAME}) (.+)", line)
        if not match:
            raise Malformed(f"comment {line!r}")
        kind, name, rest = match.groups()
        if kind == "HELP":
            if name in self.families:
                raise Malformed(f"{name} is introduced twice")
            self.family = self.families[name] = Family(name, rest)
        elif self.family is None or self.family.name != name or self.family.type:
            raise Malformed(f"TYPE of {name} is not right behind its HELP")
        elif rest not in ("counter", "gauge", "histogram"):
            raise Malformed(f"{name} is of type {rest}")
        else:
            self.family.type = rest

    def sample(self, line):
        match = _SAMPLE.match(line)
        if not match:
            raise Malformed(f"sample {line!r}")
        name, labels = match.group(1), _labels(match.group(2) or "")
        if self.family is None or not self.family.type or not _base(self.family, name):
            raise Malformed(f"{name} does not stand in its family")
        if (name, labels) in self.seen:
            raise Malformed(f"twice: {line!r}")
        self.seen.add((name, labels))
        self.family.samples.append((name, labels, _number(match.group(3))))


def parse(text):
    """Family by name. Raises Malformed."""
    if not text.endswith("\n"):
        raise Malformed("the last line does not end")
    reader = _Reader()
    for line in text[:-1].split("\n"):
        if line.startswith("#"):
            reader.comment(line)
        else:
            reader.sample(line)
    for family in reader.families.values():
        _check_conventions(family)
        if family.type == "histogram":
            _check_histogram(family)
    return reader.families


def value(families, name, **labels):
    """Of one series; None: there is none."""
    wanted = tuple(sorted(labels.items()))
    base = next((name.removesuffix(s) for s in _SUFFIXES if name.removesuffix(s) in families), name)
    for family in (families.get(name), families.get(base)):
        for sample, have, number in family.samples if family else ():
            if sample == name and have == wanted:
                return number
    return None


def total(families, name, **labels):
    """The sum of all series that carry these labels."""
    return sum(
        number for sample, have, number in families[name].samples
        if sample == name and set(labels.items()) <= set(have)
    )
